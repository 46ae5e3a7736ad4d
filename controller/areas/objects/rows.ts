import { AppError } from "../../../common/errors.ts";
import type { Row, Value } from "../../../common/value.ts";
import type { ColumnEdit } from "./compose.ts";
import { PSEUDO_COLUMNS } from "./definition.ts";
import { keyOf, type IdSource } from "./identity.ts";
import type { Snapshot } from "./snapshot.ts";
import type { Edit } from "./types.ts";
import { canonicalText, canonicalValue, isCollection, isObject, typeText } from "./values.ts";
import type { LoadedClass, LoadedColumn } from "./views.ts";

/** What an attribute named like an edge type says: ids of the objects the edges go to. */
export interface LinkEdit {
  readonly type: string;
  readonly operation: "set" | "add" | "take";
  readonly ids: readonly string[];
}

export interface CheckedEdits {
  readonly edits: readonly ColumnEdit[];
  readonly links: readonly LinkEdit[];
}

export interface CheckedRow extends CheckedEdits {
  readonly key: string;
  readonly fresh: boolean;
  /** The time its write is to bear, when that was settled before. */
  readonly writeUs?: number | undefined;
}

/** A row as it will be written. Throws what is wrong with it. */
export function checkRow(view: LoadedClass, snapshot: Snapshot, row: Row, source: IdSource): CheckedRow {
  const { edits, links } = checkEdits(
    view,
    snapshot,
    Object.keys(row).map((column): Edit => ({ column, operation: "set", value: row[column] })),
  );
  const keys: Row = {};
  for (const { column, value } of edits) if (column.key && value !== undefined) keys[column.name] = value;
  const given = Object.hasOwn(row, "id") ? row.id : undefined;
  const { key, fresh } = keyOf(view, keys, given, source);
  return { key, fresh, edits, links };
}

/** Members the platform keeps by itself are passed over. */
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

/** The canonical values of a record, which has no edges and only ever is written whole. */
export function checkRecordRow(view: LoadedClass, snapshot: Snapshot, values: Row): Row {
  const row: Row = {};
  for (const name of Object.keys(values)) {
    if (PSEUDO_COLUMNS.has(name)) continue;
    const column = view.column(name);
    if (column === undefined) {
      if (snapshot.hasEdgeType(name))
        throw new AppError("invalid", `[Valid] class ${view.path}: records have no edges.`);
      throw unknownColumn(view, name);
    }
    const value = canonicalValue(column, values[name] ?? null);
    if (value !== undefined) row[name] = value;
  }
  return row;
}

function unknownColumn(view: LoadedClass, name: string): AppError {
  return new AppError("not_found", `[NotExist] Field ${name} Not Exist in ${view.path}.`, {
    details: { column: name },
  });
}

/** Runs `check` for every row and says which one was wrong. */
export function checkAll<T, R>(rows: readonly T[], check: (row: T) => R): R[] {
  return rows.map((row, at) => {
    try {
      return check(row);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      throw new AppError(error.code, error.message, { cause: error, details: { ...error.details, row: at } });
    }
  });
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

/** A key, a list of keys, or an object of which only the keys count. */
function takenKeys(value: Value): Value {
  const given = typeof value === "string" && /^\s*[[{]/.test(value) ? parsed(value) : value;
  if (Array.isArray(given)) return given.map((key: Value) => canonicalText(key));
  return isObject(given) ? Object.keys(given) : [canonicalText(given)];
}

function parsed(text: string): Value {
  try {
    return JSON.parse(text) as Value;
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
