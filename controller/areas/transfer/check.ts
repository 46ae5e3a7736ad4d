import { AppError } from "../../../common/errors.ts";
import { IMPORT_FAULTS_MAX, IMPORT_WARNINGS_MAX } from "../../../common/limits.ts";
import type { Statement } from "../../../common/mql/index.ts";
import type { Clock } from "../../../common/time.ts";
import type { Row } from "../../../common/value.ts";
import type { Edit, Objects, DryRun } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import {
  bindInsert,
  bindInsertJson,
  checkRowCondition,
  classChange,
  classSpec,
  definitionWarnings,
  inSlices,
  Slices,
} from "../query/index.ts";
import { AheadRows } from "./ahead.ts";
import { markedRow } from "./marked.ts";
import type { PathOf } from "./rooted.ts";
import { bindPast, type BoundWork, namesTimes, type PastRow } from "./past/bind.ts";
import type { PastNotes } from "./past/notes.ts";
import { PastOrder } from "./past/order.ts";
import type { PastPlan } from "./past/plan.ts";
import { faultOf, parsePart, type ScriptPart } from "./source.ts";
import { OpenTargets } from "./targets.ts";

export interface CheckContext {
  readonly principal: Principal;
  readonly rehearsal: DryRun;
  readonly objects: Objects;
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
  readonly pathOf: PathOf;
  /** True if the import stores former times and earlier states. */
  readonly times: boolean;
  /** Counts the rows and times that are not stored. */
  readonly past: PastNotes;
  /** Looks up objects with former times; absent: they are not looked up. */
  readonly plan?: PastPlan | undefined;
  /** Called for each row that would be written. An error that it throws becomes a fault of the row. */
  readonly note?: ((row: NotedRow) => Promise<void>) | undefined;
}

export interface CheckedScript {
  /** Number of parts. */
  readonly total: number;
  /** Warnings about definitions that are accepted, in the words of their statements; absent without any. */
  readonly warnings?: readonly string[];
}

/** A checked row of a class of the tenant. */
export interface NotedRow {
  /** Absent: the id is generated when the row is written. */
  readonly id: string | undefined;
  readonly part: ScriptPart;
}

/**
 * Checks a whole script without writing: grammar, names, values, rights and classes of edge targets. The check uses the
 * classes that the script itself would define. Reports up to `IMPORT_FAULTS_MAX` faults
 * together, and up to as many places of rows whose times are too far in the future.
 */
export async function checkScript(
  parts: AsyncIterable<ScriptPart | undefined>,
  context: CheckContext,
): Promise<CheckedScript> {
  const slices = new Slices({ ...context, tenant: context.principal.tenant });
  const faults: AppError[] = [];
  const targets = new OpenTargets();
  const ahead = new AheadRows(context.clock.nowMs());
  const order = new PastOrder();
  const warnings: string[] = [];
  let total = 0;
  for await (const part of parts) {
    if (!part) {
      if (slices.isOverNow()) await slices.pause();
      continue;
    }
    total += 1;
    faults.push(...(part.faults ?? []));
    await checkPart(part, { ...context, part, targets, ahead, order, warnings, slices }).catch((error: unknown) =>
      faults.push(faultOf(part, error)),
    );
    faults.push(...order.faults(false));
    if (faults.length >= IMPORT_FAULTS_MAX) break;
    if (slices.isOver()) await slices.pause();
  }
  slices.check();
  faults.push(...order.faults(true));
  if (faults.length === 0)
    faults.push(...(await targets.faults(context.objects, context.principal)).slice(0, IMPORT_FAULTS_MAX));
  const isWhole = faults.length < IMPORT_FAULTS_MAX;
  const told = [...faults.slice(0, IMPORT_FAULTS_MAX), ...ahead.faults(isWhole)];
  const [first] = told;
  if (first)
    throw new AppError(first.code, faultText(told, isWhole), {
      details: { faults: told.map(({ message }) => message), ...(!isWhole && { limit: "IMPORT_FAULTS_MAX" }) },
    });
  await context.plan?.lookUp();
  await context.rehearsal.requireRoom();
  if (total === 0) throw new AppError("invalid", "[Valid] The upload has no statement in it.");
  return { total, ...(warnings.length > 0 && { warnings }) };
}

function faultText(faults: readonly AppError[], isWhole: boolean): string {
  const many = isWhole ? "" : `, and perhaps more than these ${IMPORT_FAULTS_MAX}`;
  return `${faults.map(({ message }) => message).join("\n")}\nNothing was written${many}.`;
}

interface PartContext extends CheckContext {
  readonly part: ScriptPart;
  readonly targets: OpenTargets;
  readonly ahead: AheadRows;
  readonly order: PastOrder;
  /** Gets the warnings, up to `IMPORT_WARNINGS_MAX`. */
  readonly warnings: string[];
  readonly slices: Slices;
}

async function checkPart(part: ScriptPart, context: PartContext): Promise<void> {
  const statements = await parsePart(part, context.pathOf, context.slices);
  for (const statement of statements) await checkStatement(statement, context);
}

async function checkStatement(statement: Statement, context: PartContext): Promise<void> {
  const { rehearsal } = context;
  switch (statement.kind) {
    case "insert":
    case "insertJson":
      noteUntaken(statement, context);
      for (const work of await insertWorks(statement, { ...context, catalog: rehearsal.catalog })) {
        context.ahead.note(work, statement, context.part);
        if (work.past) await notePast({ ...work.past, class: work.view.path }, context);
        await checkRows(work, context);
      }
      return;
    case "createClass":
      noteWarnings(statement, context);
      return rehearsal.createClass(classSpec(statement, []), { ifNotExists: statement.ifNotExists });
    case "alterClass":
      noteWarnings(statement, context);
      return rehearsal.alterClass(statement.class.path, classChange(statement, []));
    case "createEdgeType":
      return rehearsal.createEdgeType(
        { name: statement.name, remedy: statement.remedy ?? "" },
        { ifNotExists: statement.ifNotExists },
      );
    case "batch":
      for (const inner of statement.statements) await checkStatement(inner, context);
      return;
    default:
      throw new AppError(
        "unsupported",
        "[Valid] An import takes CREATE CLASS, CREATE EDGE TYPE, ALTER CLASS and INSERT, alone or in batches.",
      );
  }
}

function noteWarnings(statement: Statement, { principal, rehearsal: { catalog }, warnings }: PartContext): void {
  const left = IMPORT_WARNINGS_MAX - warnings.length;
  if (left > 0) warnings.push(...definitionWarnings(statement, { principal, catalog }).slice(0, left));
}

export type InsertStatement = Extract<Statement, { kind: "insert" | "insertJson" }>;

async function notePast(row: { readonly class: string } & PastRow, { order, plan, part }: PartContext): Promise<void> {
  order.note(row, part);
  await plan?.note(row);
}

/** Counts the times and earlier states that an import without `times` does not store. */
export function noteUntaken(statement: InsertStatement, { times, past }: Pick<PartContext, "times" | "past">): void {
  if (times || statement.kind === "insertJson") return;
  if (statement.past) past.add("versions");
  else if (namesTimes(statement)) past.add("times", undefined, statement.rows.length);
}

/** The rows by class, after a check of names and rights. Without `times`, earlier states give no rows. */
export async function insertWorks(
  statement: InsertStatement,
  { slices, ...context }: Pick<PartContext, "principal" | "slices" | "pathOf" | "times"> & Pick<DryRun, "catalog">,
): Promise<readonly BoundWork[]> {
  const { principal, catalog, pathOf, times } = context;
  const target = { principal, catalog, pathOf, executions: [[]], takesRecordColumns: true as const };
  if (times && statement.kind === "insertJson")
    throw new AppError("unsupported", "[Valid] INSERT JSON has no times: an import with times=true takes INSERT INTO.");
  if (statement.kind === "insert" && (statement.past || (times && namesTimes(statement))))
    return times ? inSlices(bindPast(statement, target), slices) : [];
  const steps = statement.kind === "insert" ? bindInsert(statement, target) : bindInsertJson(statement, target);
  return inSlices(steps, slices);
}

/** Checking a row takes as long as reading this many rows. */
const CHECK_WORK = 4;

/**
 * Checks the values of the rows. Rows of the platform's classes are not checked: only the guard of the owning area
 * knows which rows it refuses.
 */
async function checkRows(work: BoundWork, context: PartContext): Promise<void> {
  const { rehearsal, objects, clock, part, targets, slices } = context;
  const { view, past } = work;
  if (view.system) return;
  for (const row of work.rows) {
    if (slices.isOver(CHECK_WORK)) await slices.pause();
    if (past && past.kind !== "present") {
      rehearsal.checkEdits(view.path, editsOf(row));
      continue;
    }
    const { values, marked } = markedRow(row, view);
    const id = rehearsal.checkRow(view.path, values, marked);
    targets.note(row, { id, part, view, catalog: rehearsal.catalog });
    await context.note?.({ id, part });
  }
  await checkRowCondition(work, { objects, clock });
}

/** An earlier state is checked as edits of an object, because it creates none. */
function editsOf(row: Row): Edit[] {
  return Object.entries(row).map(([column, value]) => ({ column, operation: "set", value }));
}
