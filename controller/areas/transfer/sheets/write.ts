import { AppError } from "../../../../common/errors.ts";
import { SHEET_CELL_MAX_CHARACTERS } from "../../../../common/limits.ts";
import type { Value } from "../../../../common/value.ts";
import type { ClassView, Column, EdgeType } from "../../objects/index.ts";
import { createClassNode } from "../definitions.ts";
import type { ExportedObject } from "../rows.ts";
import type { ExportedClass } from "../types.ts";
import { EDGE_TYPES, markedText, optionText, letters, RELATION, typeText } from "./names.ts";
import type { Cell, SheetContent } from "./workbook.ts";

/** Earliest time that is written as a date: from here on, years have four digits. */
const CALENDAR_MIN_MS = Date.UTC(1000, 0, 1);
const CALENDAR_MAX_MS = Date.UTC(9999, 11, 31);
/** Spreadsheet programs keep 15 digits of a number, so greater whole numbers are written as text. */
const EXACT_BELOW = 1e15;

export interface ClassSheetOptions {
  readonly parent: ClassView | undefined;
  /** Names of the edge types that objects of the class may have. */
  readonly relations: readonly string[];
  readonly objects: () => AsyncIterable<readonly ExportedObject[]>;
}

export function edgeTypeSheet(types: readonly EdgeType[]): SheetContent {
  return {
    name: EDGE_TYPES,
    async *rows() {
      yield await Promise.resolve([EDGE_TYPES]);
      for (const { name, remedy } of types) yield [name, remedy];
    },
  };
}

/** The sheet of a class. It has all columns of the class, including inherited ones, because its objects have them. */
export function classSheet(exported: ExportedClass, options: ClassSheetOptions): SheetContent {
  const relations = options.relations.filter((type) => exported.view.column(type) === undefined);
  return {
    name: exported.view.label,
    async *rows() {
      for (const row of headRows(exported, options.parent, relations)) yield bounded(row, exported.view.path);
      for await (const objects of options.objects())
        for (const object of objects) yield bounded(objectRow(exported.columns, relations, object), object.id);
    },
  };
}

function headRows(
  exported: ExportedClass,
  parent: ClassView | undefined,
  relations: readonly string[],
): readonly (readonly Cell[])[] {
  const { columns, options } = createClassNode({ ...exported, ownColumns: exported.columns }, parent);
  return [
    ["class", exported.view.path],
    ["keys", ...exported.ownKeys],
    ["indexes", ...exported.ownIndexes],
    ["options", ...options.map(optionText)],
    ["name", ...columns.map(({ name }) => name), ...relations],
    ["title", ...columns.map(({ title }) => title)],
    ["type", ...columns.map(typeText), ...relations.map(() => RELATION)],
  ];
}

function objectRow(
  columns: readonly Column[],
  relations: readonly string[],
  { id, values, relations: targets }: ExportedObject,
): readonly Cell[] {
  const own = columns.map((column) => cellOf(column, values[column.name] ?? null));
  return [id, ...own, ...relations.map((type) => (targets.has(type) ? JSON.stringify(targets.get(type)) : undefined))];
}

/**
 * The row. `AppError("too_large")` for a text longer than a cell allows: spreadsheet programs would report the file as
 * damaged.
 */
function bounded(row: readonly Cell[], of: string): readonly Cell[] {
  const long = row.findIndex((cell) => typeof cell === "string" && cell.length > SHEET_CELL_MAX_CHARACTERS);
  if (long === -1) return row;
  throw new AppError(
    "too_large",
    `[Exec] ${of} has a text of more than the ${SHEET_CELL_MAX_CHARACTERS} characters of a cell (column ${letters(long)}): export it as mql, or leave its column out by ignorefields.`,
    { details: { limit: "SHEET_CELL_MAX_CHARACTERS" } },
  );
}

function cellOf({ type }: Column, value: Value): Cell {
  if (value === null) return undefined;
  if (type === "bucket" || type === "bitlog" || typeof value === "object") return JSON.stringify(value);
  if (type === "timestamp" && typeof value === "number") return timeText(value);
  if (typeof value === "string") return type === "varchar" || type === "text" ? markedText(value) : value;
  return typeof value === "number" ? numberCell(value) : value;
}

function numberCell(value: number): Cell {
  return Number.isInteger(value) && Math.abs(value) >= EXACT_BELOW ? String(value) : value;
}

function timeText(timeMs: number): Cell {
  if (timeMs < CALENDAR_MIN_MS || timeMs > CALENDAR_MAX_MS) return String(timeMs);
  return new Date(timeMs).toISOString().slice(0, 23).replace("T", " ");
}
