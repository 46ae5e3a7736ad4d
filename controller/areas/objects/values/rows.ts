import { setImmediate } from "node:timers/promises";
import { AppError } from "../../../../common/errors.ts";
import { parseJson } from "../../../../common/json.ts";
import type { Row, Value } from "../../../../common/value.ts";
import { PSEUDO_COLUMNS } from "../definitions/definition.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import type { LoadedClass, LoadedColumn } from "../definitions/views.ts";
import type { ClassView, Edit, WriteBasis } from "../types.ts";
import type { ColumnEdit } from "./compose.ts";
import { keyOf, type Identified, type IdSource } from "./identity.ts";
import { canonicalText, canonicalValue, isCollection, isObject, typeText } from "./values.ts";

/** Rows to check before other work gets the thread. */
const ROWS_CHECKED_AT_ONCE = 200;

/** An attribute named like an edge type: ids of the objects its edges go to. */
export interface LinkEdit {
  readonly type: string;
  readonly operation: "set" | "add" | "take";
  readonly ids: readonly string[];
}

export interface CheckedEdits {
  readonly edits: readonly ColumnEdit[];
  readonly links: readonly LinkEdit[];
  /** True if a trigger asks to announce the write. */
  readonly announced?: boolean;
  /** Columns whose values triggers computed from what was read. Absent: none. */
  readonly computed?: ReadonlySet<string>;
}

export interface CheckedRow extends CheckedEdits {
  readonly key: string;
  readonly fresh: boolean;
  /** Preset time of its write. */
  readonly writeUs?: number | undefined;
  /** As in `NewRecord`. */
  readonly wholeBut?: ReadonlySet<string> | undefined;
  /** As in `EntityWrite`. */
  readonly createdMs?: number | undefined;
  readonly hasVersion?: boolean | undefined;
}

/** A row as it will be written. Throws if it is invalid. */
export function checkRow(
  view: LoadedClass,
  snapshot: Snapshot,
  row: Row,
  { source, basis }: { readonly source: IdSource; readonly basis?: WriteBasis | undefined },
): CheckedRow {
  const { edits, links } = checkEdits(
    view,
    snapshot,
    Object.keys(row).map((column): Edit => ({ column, operation: "set", value: row[column] })),
  );
  const keys: Row = {};
  for (const { column, value } of edits) {
    const isKey = basis === undefined ? column.key : basis.keys.includes(column.name);
    if (isKey && value !== undefined) keys[column.name] = value;
  }
  const given = Object.hasOwn(row, "id") ? row.id : undefined;
  const identified = basis === undefined ? view : identifiedBy(view, basis);
  const { key, fresh } = keyOf(identified, keys, given, source);
  return { key, fresh, edits, links };
}

function identifiedBy({ path, label }: LoadedClass, { keys, keyMode }: WriteBasis): Identified {
  return { path, label, keys, options: { keyMode } };
}

/** Skips members that the platform keeps itself. */
export function checkEdits(view: LoadedClass, snapshot: Snapshot, edits: readonly Edit[]): CheckedEdits {
  const checked: ColumnEdit[] = [];
  const links: LinkEdit[] = [];
  for (const edit of edits) {
    if (PSEUDO_COLUMNS.has(edit.column)) continue;
    const column = view.column(edit.column);
    if (column !== undefined) checked.push({ column, operation: edit.operation, value: editValue(column, edit) });
    else if (snapshot.hasEdgeType(edit.column))
      links.push({ type: edit.column, operation: edit.operation, ids: linkIds(edit.column, edit.value) });
    else throw unknownColumn(view, edit.column);
  }
  return { edits: checked, links };
}

/** The canonical values of a record, which has no edges and is only written whole. */
export function checkRecordRow(view: LoadedClass, snapshot: Snapshot, values: Row): Row {
  const row: Row = {};
  for (const name of Object.keys(values)) {
    if (PSEUDO_COLUMNS.has(name)) continue;
    const column = view.column(name);
    if (column === undefined) {
      if (snapshot.hasEdgeType(name))
        throw new AppError("invalid", `[Valid] class ${view.path}: records have no edges.`);
      throw view.recordColumn(name) === undefined ? unknownColumn(view, name) : keptByPlatform(name, view);
    }
    const value = canonicalValue(column, values[name] ?? null);
    if (value !== undefined) row[name] = value;
  }
  return row;
}

/** The error of a statement, rule or trigger that gives a value to a column of `recordColumns`. */
export function keptByPlatform(name: string, { path }: Pick<ClassView, "path">): AppError {
  return new AppError(
    "invalid",
    `[Valid] ${name} of the records of ${path} is kept by the platform and cannot be written: leave it out.`,
    { details: { column: name } },
  );
}

function unknownColumn(view: LoadedClass, name: string): AppError {
  return new AppError("not_found", `[NotExist] Field ${name} Not Exist in ${view.path}.`, {
    details: { column: name },
  });
}

/** Runs `check` for every row; an error names the row. */
export async function checkAll<T, R>(rows: readonly T[], check: (row: T) => R): Promise<R[]> {
  const checked: R[] = [];
  for (const row of rows) {
    checked.push(checkOne(row, checked.length, check));
    if (checked.length % ROWS_CHECKED_AT_ONCE === 0) await setImmediate();
  }
  return checked;
}

function checkOne<T, R>(row: T, at: number, check: (row: T) => R): R {
  try {
    return check(row);
  } catch (error) {
    throw inRow(error, at);
  }
}

/** Returns the result of `work`; an error names the row. */
export async function ofRow<R>(at: number, work: () => Promise<R>): Promise<R> {
  try {
    return await work();
  } catch (error) {
    throw inRow(error, at);
  }
}

function inRow(error: unknown, at: number): unknown {
  if (!(error instanceof AppError)) return error;
  return new AppError(error.code, error.message, { cause: error, details: { ...error.details, row: at } });
}

function editValue(column: LoadedColumn, edit: Edit): Value | undefined {
  if (edit.value === undefined) return undefined;
  if (edit.operation === "set") return canonicalValue(column, edit.value);
  if (!isCollection(column.type)) {
    throw new AppError(
      "invalid",
      `[Format] column ${column.name}: + and - are for sets, lists and maps, not for ${typeText(column)}.`,
    );
  }
  return edit.operation === "take" && column.type === "map"
    ? takenKeys(edit.value)
    : canonicalValue(column, edit.value);
}

/** Names to take, from a key, a list of keys, or an object, of which only the keys count. */
function takenKeys(value: Value): Value {
  const given = typeof value === "string" && /^\s*[[{]/.test(value) ? parsed(value) : value;
  if (Array.isArray(given)) return given.map((key: Value) => canonicalText(key));
  return isObject(given) ? Object.keys(given) : [canonicalText(given)];
}

function parsed(text: string): Value {
  try {
    return parseJson(text) as Value;
  } catch {
    return text;
  }
}

function linkIds(type: string, value: Value | undefined): string[] {
  const given = typeof value === "string" && value.trimStart().startsWith("[") ? parsed(value) : value;
  if (given === undefined || given === null || given === "") return [];
  const ids: readonly Value[] = Array.isArray(given) ? (given as readonly Value[]) : [given];
  return ids.map((id) => {
    if (typeof id === "string") return id;
    throw new AppError("invalid", `[Format] ${type}: an edge goes to the id of an object, such as "box:1".`);
  });
}
