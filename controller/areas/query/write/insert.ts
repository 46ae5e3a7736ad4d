import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import { parseJson } from "../../../../common/json.ts";
import { HTTP_JSON_BOUNDS, type JsonBounds, JsonDecoder } from "../../../../common/json-decoder.ts";
import { INSERT_JSON_VALUES_MAX, WRITE_AHEAD_MAX_MS } from "../../../../common/limits.ts";
import {
  type Insert,
  type InsertJson,
  NOWHERE,
  type Span,
  type Steps,
  type ValueNode,
} from "../../../../common/mql/index.ts";
import type { Row, Value } from "../../../../common/value.ts";
import { type ClassCatalog, type ClassView, keptByPlatform } from "../../objects/index.ts";
import { fitsOneTurn } from "../../../turns/decoding.ts";
import type { Principal } from "../../permissions/index.ts";
import { TIME, toComparable } from "../expressions/kind.ts";
import { type Arguments, isList, isMap, literal } from "../expressions/literal.ts";
import { about } from "../expressions/placing.ts";
import { bytesOf } from "../expressions/aggregates/memory.ts";
import { isPseudo } from "../plan/names/pseudo.ts";
import { type Scope, scopeOf } from "../plan/names/scope.ts";
import type { Slices } from "../run/slice.ts";
import type { WrittenRelation } from "./missing-ends.ts";
import { checkRows, type GatedRow } from "./rows-after.ts";
import type { UnstoredRows } from "./unstored.ts";
import { guarded, isRuledByRow, requireWritable, type WriteContext } from "./write.ts";

/** Rows for one class, after their names and rights are checked. */
export interface InsertWork {
  readonly scope: Scope;
  readonly view: ClassView;
  readonly rows: readonly Row[];
  readonly atMs: number | undefined;
}

export interface InsertContext extends WriteContext {
  /** Receives the rows whose objects do not exist after the write. */
  readonly unstored: UnstoredRows;
}

export interface InsertTarget {
  readonly principal: Principal;
  readonly catalog: ClassCatalog;
  /** Values of the placeholders, one list for each execution. */
  readonly executions: readonly Arguments[];
  /** Maps the class paths in the JSON of INSERT JSON. Absent: they stay as they are. */
  readonly pathOf?: (path: string) => string;
  /** Current time. Entities get no time that is too far ahead of it. Absent: the caller checks times (`aheadFault`). */
  readonly nowMs?: number;
  /** Rows may have values of `recordColumns`, as exports have. Absent: such a value is an error. */
  readonly takesRecordColumns?: true;
}

/** Binds in steps, row by row, because there may be many rows. */
export function* bindInsert(statement: Insert, target: InsertTarget): Steps<readonly InsertWork[]> {
  if (statement.past)
    throw new AppError(
      "unsupported",
      `[Valid] INSERT ${statement.past.kind.toUpperCase()} is taken in by an import with times=true alone.`,
    );
  if (statement.class.subtree)
    throw new AppError(
      "invalid",
      `[Valid] INSERT names one class: ${statement.class.path} without the slash at its end.`,
    );
  const { scope, view } = writableClass(statement.class, target);
  if (statement.at && view.system) throw guarded("inserted as of another time", view);
  const { columns, columnPlaces = [], span } = statement;
  const names = columns.map((name, at) => about(columnPlaces[at] ?? span, () => insertedName(name, scope, target)));
  const works: InsertWork[] = [];
  for (const values of target.executions) {
    const atMs = statement.at && versionTime(literal(statement.at, values));
    const ahead = target.nowMs === undefined ? undefined : aheadFault({ view, atMs }, target.nowMs);
    if (ahead) throw ahead;
    works.push({ scope, view, rows: yield* boundRows(statement, names, values), atMs });
  }
  return statement.at ? works : [{ scope, view, rows: works.flatMap((work) => work.rows), atMs: undefined }];
}

function* boundRows(
  { rows }: Insert,
  names: readonly (string | undefined)[],
  values: Arguments,
): Steps<readonly Row[]> {
  const bound: Row[] = [];
  for (const row of rows) {
    const made = rowOf(names, row, values);
    bound.push(made);
    yield bytesOf(made);
  }
  return bound;
}

/**
 * Binds objects whose class is a member of the JSON. Successive objects of one class are written together, but under a
 * row condition one by one: a second write of an object may fulfil the condition only with what the first one wrote
 * (`test/mql/rights.test.mql`).
 */
export function* bindInsertJson(statement: InsertJson, target: InsertTarget): Steps<readonly InsertWork[]> {
  const works: (InsertWork & { readonly rows: Row[] })[] = [];
  for (const values of target.executions) {
    const given = yield* parsed(literal(statement.json, values));
    for (const object of isList(given) ? given : [given]) {
      const { path: named, row } = jsonObject(object);
      const path = target.pathOf?.(named) ?? named;
      const last = works.at(-1);
      const isSame = last?.view.path === path && !isRuledByRow(last.scope, last.view);
      const work = isSame ? last : { ...writableClass({ path }, target), rows: [], atMs: undefined };
      if (!isSame) works.push(work);
      const made = jsonRow(row, work.scope, target);
      work.rows.push(made);
      yield bytesOf(made);
    }
  }
  return works;
}

export function* insertedRelations(works: readonly InsertWork[]): Iterable<WrittenRelation> {
  for (const { scope, rows } of works) {
    for (const row of rows) {
      for (const [type, value] of Object.entries(row)) if (scope.isRelation(type)) yield { type, value };
    }
  }
}

export async function runInsert(
  works: readonly InsertWork[],
  context: InsertContext,
  slices: Slices,
): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const work of works) {
    // Rows that are already written remain, as with every interrupted change.
    slices.check();
    await checkRowCondition(work, context);
    ids.push(...(await insertRows(work, works.length === 1 ? context : { ...context, inCommit: undefined })));
  }
  return ids;
}

function writableClass(
  { path, span = NOWHERE }: { readonly path: string; readonly span?: Span },
  { principal, catalog }: InsertTarget,
): { readonly scope: Scope; readonly view: ClassView } {
  const scope = scopeOf(principal, catalog, { path, subtree: false, alias: undefined, span });
  const [view] = scope.classes;
  if (!view) throw new RangeError("a scope has a class");
  requireWritable(scope, view);
  if (view.system && !view.guard?.insert) throw guarded("inserted", view);
  return { scope, view };
}

function insertRows(
  { scope, view, rows, atMs }: InsertWork,
  { objects, unstored, inCommit }: InsertContext,
): Promise<readonly string[]> {
  const guard = view.guard?.insert;
  if (view.system && guard) return guard(scope.principal, rows);
  return unstored.storedOf((told) => {
    const options = { rewrites: true, unstored: told, inCommit };
    const given = atMs === undefined ? options : { ...options, atMs };
    return objects.unrestricted.insert(scope.principal, view.path, rows, given);
  });
}

/**
 * Defined name of a column, or of an edge type, for which the value is a relation. Undefined: the platform sets this
 * member itself, so the given value is left out.
 */
function insertedName(
  written: string,
  scope: Scope,
  { takesRecordColumns }: Pick<InsertTarget, "takesRecordColumns"> = {},
): string | undefined {
  const name = scope.definedName(written);
  if (name === undefined) throw scope.unknownField([written]);
  const ofPlatform = takesRecordColumns ? undefined : scope.classes.find((view) => isOfRecords(view, name, scope));
  if (ofPlatform) throw keptByPlatform(name, ofPlatform);
  return isPseudo(name) && name !== "id" ? undefined : name;
}

function isOfRecords({ recordColumns = [] }: ClassView, name: string, scope: Scope): boolean {
  return !scope.isRelation(name) && recordColumns.some((column) => column.name === name);
}

function rowOf(names: readonly (string | undefined)[], nodes: readonly ValueNode[], values: Arguments): Row {
  const row: Row = {};
  names.forEach((name, index) => {
    const node = nodes[index];
    if (name !== undefined && node) row[name] = literal(node, values);
  });
  return row;
}

function jsonObject(row: Value): { readonly path: string; readonly row: Readonly<Record<string, Value>> } {
  if (!isMap(row) || typeof row.class !== "string")
    throw new AppError("invalid", "[Format] INSERT JSON takes an object with the member class.");
  return { path: row.class.length > 1 ? row.class.replace(/\/$/, "") : row.class, row };
}

function jsonRow(
  object: Readonly<Record<string, Value>>,
  scope: Scope,
  target: Pick<InsertTarget, "takesRecordColumns">,
): Row {
  const row: Row = {};
  for (const member of Object.keys(object)) {
    const name = insertedName(member, scope, target);
    if (name !== undefined) row[name] = object[member] ?? null;
  }
  return row;
}

/** Number of JSON values whose parsing takes as long as one row of an INSERT. */
const VALUES_PER_STEP = 100;
const MOST_VALUES = { name: "INSERT_JSON_VALUES_MAX", max: INSERT_JSON_VALUES_MAX };
const BOUNDS: JsonBounds = { ...HTTP_JSON_BOUNDS, members: MOST_VALUES, elements: MOST_VALUES };

/** Parses step by step, because there may be many values. Integers that a double does not hold stay exact, as text. */
function* parsed(json: Value): Steps<Value> {
  if (typeof json !== "string") return json;
  try {
    if (fitsOneTurn(json)) return parseJson(json, BOUNDS) as Value;
    const decoder = new JsonDecoder(json, BOUNDS);
    while (!decoder.step(VALUES_PER_STEP)) yield decoder.takeWeight();
    return decoder.value as Value;
  } catch (error) {
    if (!isAppError(error, "syntax")) throw error;
    throw new AppError("syntax", `[Format] The JSON of INSERT JSON does not parse: ${jsonFault(error)}.`, {
      cause: error,
    });
  }
}

/** The last time whose year has four digits. */
const LATEST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

function versionTime(value: Value): number {
  const timeMs = value === null ? undefined : toComparable(TIME, value);
  if (typeof timeMs === "number" && timeMs >= 0 && timeMs <= LATEST_MS) return timeMs;
  throw new AppError(
    "invalid",
    `[Format] AT ${JSON.stringify(value)} is no time from 1970 up to 9999: YYYY-MM-DD HH:mm:ss or milliseconds.`,
  );
}

/**
 * The error for rows whose time is too far ahead of the clock; `undefined` if their time is valid. Objects are written
 * above their own time, so an object of the far future could not be written at the current time again. Records are
 * written once and may have any time.
 */
export function aheadFault(
  { view, atMs }: Pick<InsertWork, "view" | "atMs">,
  nowMs: number,
  name = "AT",
): AppError | undefined {
  if (atMs === undefined || view.kind === "record" || atMs <= nowMs + WRITE_AHEAD_MAX_MS) return undefined;
  const [at, now] = [atMs, nowMs].map((timeMs) => new Date(timeMs).toISOString());
  return new AppError(
    "invalid",
    `[Valid] ${name} ${at} is more than ${WRITE_AHEAD_MAX_MS / 60_000} minutes ahead of the controller's clock (${now}). Objects of ${view.path} are written at the present time without ${name}, and keep an earlier one; only records keep any time.`,
    { details: { limit: "WRITE_AHEAD_MAX_MS", class: view.path } },
  );
}

/**
 * Checks rows in a class where the right to write depends on the row. `AppError("denied")` if the principal may not see
 * or write an object, before or after the write. An insert with an existing id changes that object.
 */
export async function checkRowCondition(
  work: InsertWork,
  context: Pick<WriteContext, "objects" | "clock">,
): Promise<void> {
  const { rows, atMs } = work;
  if (!isRuledByRow(work.scope, work.view)) return;
  await checkRows(
    work,
    rows.map((values) => ({ values, timeMs: atMs })),
    context,
  );
}

/** Checks if rows from a source other than a statement may be written. */
export interface RowGate {
  /**
   * True if rows must be checked and written one by one, because a row may fulfil a row condition only with what an
   * earlier row wrote.
   */
  readonly isByRow: boolean;
  /** Throws the errors that an INSERT of these rows would throw: for class, columns and row condition. */
  check(rows: readonly GatedRow[]): Promise<void>;
}

/** `AppError("denied")` for a class into which the principal may not insert. */
export function rowGate(
  target: Pick<InsertTarget, "principal" | "catalog">,
  path: string,
  context: Pick<WriteContext, "objects" | "clock">,
): RowGate {
  const { scope, view } = writableClass({ path }, { ...target, executions: [] });
  const known = new Set<string>();
  return {
    isByRow: isRuledByRow(scope, view),
    check: async (rows) => {
      for (const { values } of rows) {
        for (const name of Object.keys(values)) {
          if (known.has(name)) continue;
          insertedName(name, scope);
          known.add(name);
        }
      }
      await checkRows({ scope, view }, rows, context);
    },
  };
}

/** Removes line and column, because they are those in the JSON and not in the statement. */
function jsonFault(error: unknown): string {
  return errorText(error)
    .replace(/^Not valid JSON: (.*)\.$/s, "$1")
    .replace(/ at line \d+ column \d+$/, "");
}
