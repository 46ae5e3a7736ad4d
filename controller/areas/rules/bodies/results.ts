import { AppError } from "../../../../common/errors.ts";
import { RULE_FORWARDS_PER_RECORD_MAX, RULE_ROWS_PER_RECORD_MAX } from "../../../../common/limits.ts";
import type { Row, Value } from "../../../../common/value.ts";
import type { ClassCatalog } from "../../objects/index.ts";
import { classAccess, type Principal } from "../../permissions/index.ts";
import { NO_FIELD } from "../definitions/paths.ts";
import { readTimes, timeColumns } from "../definitions/times.ts";
import type { ParsedRow, RawRecord, Rule } from "../types.ts";

/** A record that is passed on to another rule. */
export interface Passed {
  readonly ordinal: number;
  readonly rule: string;
  readonly text: string;
}

/** Result of a body for one record. */
export interface BodyResult {
  readonly rows: readonly BodyRow[];
  readonly passed: readonly Pick<Passed, "rule" | "text">[];
  readonly isDropped: boolean;
  /** Reason why the body asks for another run with this record. Absent: it does not ask. */
  readonly again: string | undefined;
}

interface BodyRow {
  /** Absent: the class of the rule. */
  readonly class: string | undefined;
  readonly set: Readonly<Record<string, Value>>;
}

/** Checks the form of the result, because the body may have overwritten the variables of the frame. */
export function readResult(value: Value | undefined): BodyResult {
  const { rows, forwards, dropped, again } = objectOf(value);
  const made = listOf(rows).map((row): BodyRow => {
    const { class: path, set } = objectOf(row);
    return { class: typeof path === "string" ? path.replace(/\/+$/, "") : undefined, set: objectOf(set) };
  });
  if (made.length > RULE_ROWS_PER_RECORD_MAX)
    throw tooMany(`The rule makes ${made.length} rows of one record.`, "RULE_ROWS_PER_RECORD_MAX");
  const passed = listOf(forwards).map((one) => {
    const { rule, text } = objectOf(one);
    return { rule: String(rule), text: String(text) };
  });
  if (passed.length > RULE_FORWARDS_PER_RECORD_MAX)
    throw tooMany(`The rule passes one record on ${passed.length} times.`, "RULE_FORWARDS_PER_RECORD_MAX");
  return { rows: made, passed, isDropped: dropped === true, again: typeof again === "string" ? again : undefined };
}

/** A record, and the row that the options of the rule made of it. */
export interface BodyRecord {
  readonly record: RawRecord;
  readonly row: ParsedRow;
}

interface Of {
  readonly rule: Rule;
  readonly author: Principal;
  readonly catalog: ClassCatalog;
}

/**
 * Makes the rows to store. A row of the rule's class begins with the values of the rule's options. A row of another
 * class begins with the fields that have the names of its columns. Values that the body set replace these.
 */
export function rowsOf({ rows, passed }: BodyResult, { record, row }: BodyRecord, of: Of): ParsedRow[] {
  const { rule, author } = of;
  const made: ParsedRow[] = [];
  for (const [at, one] of rows.entries()) {
    if (one.class === undefined && rule.class === "" && Object.keys(one.set).length === 0) continue;
    const target = targetOf(one.class ?? rule.class, of);
    const values = target.path === rule.class ? ownValues(row, rows.length) : namedFields(row, target.columns);
    // A number that a body sets is in milliseconds, like all times in bodies.
    let counted: Set<string> | undefined;
    for (const [name, value] of Object.entries(one.set)) {
      const column = columnOf(name, target);
      if (value === null) delete values[column];
      else values[column] = value;
      if (typeof value === "number") (counted ??= new Set()).add(column);
    }
    const fault = readTimes(values, without(target.timeColumns, counted), { times: rule.times, record });
    if (fault !== undefined) throw new AppError("invalid", fault);
    if (Object.keys(values).length === 0) continue;
    const { ordinal } = row;
    const placed = { ok: true, ordinal, values, by: author, class: target.path } as const;
    const own = ownTimeOf(row, target, rule);
    made.push(own === undefined && at === 0 ? placed : { ...placed, ...own, ...(at > 0 && { part: `+${at}` }) });
  }
  if (made.length > 0 || passed.length > 0) return made;
  throw new AppError(
    "invalid",
    of.rule.class === "" ? "The rule has no option --class, and its body names no class." : NO_FIELD,
  );
}

/** The values that the options made. The only row of a record takes them as they are. */
function ownValues({ values }: ParsedRow, rows: number): Row {
  return rows === 1 ? values : { ...values };
}

interface Target {
  readonly path: string;
  readonly columns: readonly string[];
  readonly timeColumns: readonly string[];
  readonly isOfRecords: boolean;
}

function targetOf(path: string, { rule, author, catalog }: Of): Target {
  if (path === "") throw new AppError("invalid", "The rule has no option --class, and its body names no class.");
  if (path === rule.class) return { path, columns: rule.columns, timeColumns: rule.timeColumns, isOfRecords: true };
  const view = catalog.get(path);
  if (view === undefined || !classAccess(author, view).readable)
    throw new AppError("not_found", `class : ${path} not find !`);
  const { classes = {} } = rule.supplements;
  const then = Object.hasOwn(classes, view.path) ? classes[view.path]?.columns.map(([name]) => name) : undefined;
  return {
    path: view.path,
    columns: then ?? view.columns.map(({ name }) => name),
    timeColumns: timeColumns(view.columns),
    isOfRecords: view.kind === "record",
  };
}

/**
 * The time of the record, for a class of records; `undefined` if it has none of its own. A rule without a class may send
 * a record with `--time` to a class of objects: then the time has no effect, and the row reports that.
 */
function ownTimeOf(
  { timeMs, timeFault: fault }: ParsedRow,
  { path, isOfRecords }: Target,
  { class: own, times: { field } }: Pick<Rule, "class" | "times">,
): Pick<ParsedRow, "timeMs" | "timeFault"> | undefined {
  const isIdle = !isOfRecords && own === "" && field !== undefined;
  const timeFault = isIdle ? `--time=${field}: objects of ${path} have the time of their last write.` : fault;
  if (timeMs === undefined && timeFault === undefined) return undefined;
  return { ...(timeMs !== undefined && { timeMs }), ...(timeFault !== undefined && { timeFault }) };
}

function without(columns: readonly string[], left: ReadonlySet<string> | undefined): readonly string[] {
  return left === undefined ? columns : columns.filter((column) => !left.has(column));
}

/** The column that a variable of the body means: its name, or its name without a leading `_`. */
function columnOf(name: string, { path, columns }: Target): string {
  if (columns.includes(name) || name === "tags") return name;
  const bare = name.startsWith("_") ? name.slice(1) : name;
  if (columns.includes(bare) || bare === "tags") return bare;
  throw new AppError("not_found", `The class ${path} has no column ${bare}.`);
}

function namedFields({ fields = {} }: ParsedRow, columns: readonly string[]): Row {
  const values: Row = {};
  for (const column of columns) {
    const value = Object.hasOwn(fields, column) ? fields[column] : undefined;
    if (value !== undefined && value !== null) values[column] = value;
  }
  return values;
}

function objectOf(value: Value | undefined): Readonly<Record<string, Value>> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, Value>>)
    : {};
}

/** In Lua an empty list is an empty table, which arrives as an object. */
function listOf(value: Value | undefined): readonly Value[] {
  return Array.isArray(value) ? (value as readonly Value[]) : [];
}

function tooMany(message: string, limit: string): AppError {
  return new AppError("too_large", message, { details: { limit } });
}
