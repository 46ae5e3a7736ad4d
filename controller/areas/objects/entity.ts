import type { Row, Value } from "../../../common/value.ts";
import type { Entity, StoredCell } from "../../store/objects.ts";
import { decodeCell, encodeCell, isClearedBase } from "./codec.ts";
import type { ObjectRow } from "./types.ts";
import { canonicalText, isObject } from "./values.ts";
import type { LoadedClass, LoadedColumn } from "./views.ts";
import { wholeId } from "./identity.ts";

/** Cell of the time of the first insert, for objects that were inserted again. */
export const CREATED_CELL = "c";

/** What is stored of an entity, as its columns have it. Cells of columns that were dropped are passed over. */
export function entityRow(view: LoadedClass, entity: Entity): Row {
  const values: (Value | undefined)[] = new Array<Value | undefined>(view.columns.length);
  let collections: Map<LoadedColumn, Collection> | undefined;
  for (const [key, cell] of entity.cells) {
    const slash = key.indexOf("/");
    const column = view.columnByCellKey(slash < 0 ? key : key.slice(0, slash));
    if (column === undefined) continue;
    if (column.type !== "set" && column.type !== "map") values[column.ordinal] = decodeCell(cell.value);
    else {
      collections ??= new Map();
      gather(collections, column, { name: slash < 0 ? undefined : key.slice(slash + 1), cell });
    }
  }
  for (const [column, collection] of collections ?? []) values[column.ordinal] = collected(column, collection);
  return rowOf(view, values);
}

export function entityObject(view: LoadedClass, entity: Entity): ObjectRow {
  return {
    id: wholeId(view, entity.key.id),
    class: view,
    values: entityRow(view, entity),
    vtimeMs: Math.floor(entity.lastUs / 1_000),
    ctimeMs: createdMs(entity),
  };
}

export function createdMs(entity: Entity): number {
  const cell = entity.cells.get(CREATED_CELL);
  const created = cell === undefined ? undefined : decodeCell(cell.value);
  return typeof created === "number" ? created : Math.floor(entity.birthUs / 1_000);
}

/** A row of the values by ordinal, in the order of the columns. */
export function rowOf(view: LoadedClass, values: readonly (Value | undefined)[]): Row {
  const row: Row = {};
  for (const column of view.columns) {
    const value = values[column.ordinal];
    if (value !== undefined) row[column.name] = value;
  }
  return row;
}

/** `[number, value, number, value, …]` */
export function flatValues(view: LoadedClass, row: Row): Value[] {
  const flat: Value[] = [];
  for (const column of view.columns) {
    const value = row[column.name];
    if (value !== undefined) flat.push(column.number, value);
  }
  return flat;
}

export function rowOfFlat(view: LoadedClass, flat: readonly Value[]): Row {
  const values: (Value | undefined)[] = new Array<Value | undefined>(view.columns.length);
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const column = view.columnByNumber(Number(flat[at]));
    if (column !== undefined) values[column.ordinal] = flat[at + 1];
  }
  return rowOf(view, values);
}

/** Name and cell value of each element of a set, or entry of a map. */
export function elementCells(column: LoadedColumn, value: Value | undefined): [string, Uint8Array][] {
  if (Array.isArray(value)) return value.map((element: Value) => [canonicalText(element), encodeCell("varchar", element, column.name)]);
  if (!isObject(value)) return [];
  return Object.entries(value).map(([key, entry]) => [key, encodeCell("map", [key, entry], column.name)]);
}

interface Collection {
  baseUs: number;
  assigned: boolean;
  readonly elements: { readonly name: string; readonly cell: StoredCell }[];
}

function gather(collections: Map<LoadedColumn, Collection>, column: LoadedColumn, part: { name: string | undefined; cell: StoredCell }): void {
  const collection = collections.get(column) ?? { baseUs: -Infinity, assigned: false, elements: [] };
  collections.set(column, collection);
  if (part.name !== undefined) collection.elements.push({ name: part.name, cell: part.cell });
  else {
    collection.baseUs = part.cell.timeUs;
    collection.assigned = !isClearedBase(part.cell.value);
  }
}

/** Elements as old as the base or newer; without any the column is empty where it was assigned, else not set. */
function collected(column: LoadedColumn, collection: Collection): Value | undefined {
  const live = collection.elements.filter((element) => element.cell.timeUs >= collection.baseUs);
  if (live.length === 0 && !collection.assigned) return undefined;
  live.sort((a, b) => (a.name < b.name ? -1 : 1));
  const values = live.map((element) => decodeCell(element.cell.value));
  return column.type === "set" ? values : entriesObject(values);
}

function entriesObject(entries: readonly Value[]): Value {
  const object: Record<string, Value> = {};
  for (const entry of entries) {
    if (!Array.isArray(entry)) continue;
    const [key, value] = entry as readonly Value[];
    Object.defineProperty(object, String(key), { value, enumerable: true, configurable: true, writable: true });
  }
  return object;
}
