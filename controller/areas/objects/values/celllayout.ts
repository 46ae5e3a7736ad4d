import type { CellChoice } from "../../../store/objects.ts";
import type { LoadedClass, LoadedColumn } from "../definitions/views.ts";

/** Cell of the time of the first insert, for objects that were inserted again. */
export const CREATED_CELL = "c";

/** Cells for reads that need only times. */
export const CREATED_ONLY: CellChoice = { keys: [CREATED_CELL], prefixes: [] };

/** Positions of the columns of a class among the cells of an entity. */
export interface CellLayout {
  /** Columns that have cells, in the order of the class. */
  readonly columns: readonly ColumnCells[];
  /** Position of the cell with the time of the first insert; -1 without such a cell. */
  readonly created: number;
}

export interface ColumnCells {
  readonly column: LoadedColumn;
  /** Position of the cell of the column; for a set or map, of its base. -1 without such a cell. */
  readonly place: number;
  /** For a set or map: positions of its elements, in the order of their names. */
  readonly elements: readonly number[] | undefined;
}

export type CollectionCells = ColumnCells & { readonly elements: readonly number[] };

const layouts = new WeakMap<LoadedClass, WeakMap<readonly string[], CellLayout>>();

/** The layout of these cells. Cached, because stores share one list of keys among many entities. */
export function layoutOf(view: LoadedClass, keys: readonly string[]): CellLayout {
  let ofView = layouts.get(view);
  if (ofView === undefined) layouts.set(view, (ofView = new WeakMap()));
  let layout = ofView.get(keys);
  if (layout === undefined) ofView.set(keys, (layout = makeLayout(view, keys)));
  return layout;
}

const partial = new WeakMap<ReadonlySet<string>, WeakMap<CellLayout, CellLayout>>();

/** The layout with only the columns of these names. */
export function layoutOnly(layout: CellLayout, names: ReadonlySet<string>): CellLayout {
  let ofNames = partial.get(names);
  if (ofNames === undefined) partial.set(names, (ofNames = new WeakMap()));
  let only = ofNames.get(layout);
  if (only === undefined)
    ofNames.set(layout, (only = { ...layout, columns: layout.columns.filter(({ column }) => names.has(column.name)) }));
  return only;
}

function makeLayout(view: LoadedClass, keys: readonly string[]): CellLayout {
  const parts = new Map<LoadedColumn, { place: number; elements: number[] }>();
  for (const [place, key] of keys.entries()) {
    const slash = key.indexOf("/");
    const column = view.columnByCellKey(slash < 0 ? key : key.slice(0, slash));
    if (column === undefined) continue;
    const part = parts.get(column) ?? { place: -1, elements: [] };
    parts.set(column, part);
    if (slash < 0) part.place = place;
    else part.elements.push(place);
  }
  const columns = Array.from(parts, ([column, { place, elements }]) => ({
    column,
    place,
    elements: hasElementCells(column) ? byName(elements, keys) : undefined,
  }));
  const known = columns.filter(({ place, elements }) => place >= 0 || elements !== undefined);
  return {
    columns: known.sort((one, other) => one.column.ordinal - other.column.ordinal),
    created: keys.indexOf(CREATED_CELL),
  };
}

/** True if each element has a cell of its own. */
export function hasElementCells({ type }: LoadedColumn): boolean {
  return type === "set" || type === "map";
}

function byName(places: number[], keys: readonly string[]): readonly number[] {
  return places.sort((one, other) => (keys[one]! < keys[other]! ? -1 : 1));
}
