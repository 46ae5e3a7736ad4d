import { AppError } from "../../../common/errors.ts";
import {
  type Batch,
  type Delete,
  type Explain,
  type Insert,
  type InsertJson,
  type Match,
  printCondition,
  type Select,
  type Statement,
  type Union,
  type Update,
} from "../../../common/mql/index.ts";
import type { Clock } from "../../../common/time.ts";
import type { Row } from "../../../common/value.ts";
import {
  type ClassCatalog,
  makesClass,
  makesEdgeType,
  type ObjectRow,
  type Objects,
  type CountRequest,
  type ReadRequest,
  requireDefiner,
} from "../objects/index.ts";
import { classAccess, type Principal, requireDefining, seesAll } from "../permissions/index.ts";
import { ANALYZED_COLUMNS, Measures, planned, requireReading } from "./analyzed.ts";
import { repeatableChange } from "./batch/found.ts";
import type { Repeatable } from "./batch/repeatable.ts";
import { repeatableInsert } from "./batch/rows.ts";
import type { Arguments } from "./expressions/literal.ts";
import type { MemoryShare } from "./expressions/aggregates/memory.ts";
import { type Present, settled } from "./expressions/settled.ts";
import { eachChecked, requireFew } from "./executions.ts";
import { planGraph } from "./graph/reading.ts";
import { readsOf, type LeftOut } from "./plan/plan.ts";
import { describeFollowing, splitCondition } from "./plan/relations.ts";
import { calendarZone } from "./plan/zone.ts";
import { isSchemaClass, SCHEMA_CLASS_PATH, schemaRows } from "./plan/schema-class.ts";
import { scopeOf } from "./plan/scope.ts";
import { plainMeta } from "./run/meta.ts";
import { plannedAtOnce, planInSteps, planReading } from "./run/reading.ts";
import type { PlanStep, Reading, RunContext } from "./run/run.ts";
import { afterSteps, drained, inSlices, type Slices } from "./run/slice.ts";
import type { ColumnMeta, QueryMeta, StatementType } from "./types.ts";
import { readingWithSubSelects } from "./run/subselects.ts";
import { askingChange } from "./write/asking.ts";
import { classChange, classSpec } from "./write/define.ts";
import { bindInsert, bindInsertJson, insertedRelations, runInsert } from "./write/insert.ts";
import { UnstoredRows } from "./write/unstored.ts";
import type { WrittenRelation } from "./write/missing-ends.ts";
import { bindClear, bindDelete, bindUpdate, type Change, type WriteContext } from "./write/write.ts";

/** A statement whose names, values and rights are checked. Nothing has been read or written yet. */
export interface Prepared {
  readonly meta: QueryMeta;
  readonly isRead: boolean;
  /** The change in a repeatable form, for a batch. Absent if only the owner of a system class can make it. */
  readonly repeatable?: Repeatable | undefined;
  /** Relations that the statement writes; absent: none. */
  readonly relations?: Iterable<WrittenRelation>;
  /** Warnings for the caller. Call it after the run. */
  readonly warnings?: () => readonly string[];
  /** Makes a change at once. A read is made while its rows are taken. */
  run(): AsyncIterable<readonly Row[]> | Promise<AsyncIterable<readonly Row[]>>;
  /** The steps of a run, one line each. Changes nothing. */
  explain(): Promise<readonly PlanStep[]>;
}

export interface PreparedStatement {
  readonly statement: Statement;
  readonly prepared: Prepared;
}

export interface PrepareContext {
  readonly principal: Principal;
  readonly catalog: ClassCatalog;
  readonly objects: Objects;
  readonly clock: Clock;
  /** Value of `now()`. It stays the same when another controller continues the batch. */
  readonly nowMs: number;
  readonly signal: AbortSignal | undefined;
  readonly executions: readonly Arguments[];
  readonly sortFolder: string | undefined;
  /** Time slices of all work before the rows are taken. */
  readonly slices: Slices;
  /** Counts the memory of the statement until its run. Absent if no caller waits for the statement. */
  readonly memory: Pick<MemoryShare, "take"> | undefined;
  /** Absent: reads are not measured. */
  readonly measures?: Measures;
}

const COUNT_COLUMN: ColumnMeta = { name: "count", title: "count", type: "bigint" };
const IDS_COLUMN: ColumnMeta = { name: "ids", title: "ids", type: "list" };

/** Throws at once, or rejects. */
export function prepare(statement: Statement, context: PrepareContext): Prepared | Promise<Prepared> {
  switch (statement.kind) {
    case "select":
    case "union":
    case "match":
      return select(statement, context);
    case "selectEdgeTypes":
      return edgeTypes(context);
    case "insert":
    case "insertJson":
      return insert(statement, context);
    case "update":
      return change("update", statement, context);
    case "delete":
      return change("delete", statement, context);
    case "createClass":
    case "dropClass":
    case "alterClass":
    case "createEdgeType":
    case "dropEdgeType":
      return definition(statement, context);
    case "explain":
      return explain(statement, context);
    case "batch":
      return batch(statement, context);
  }
}

export function changesAnything(statement: Statement): boolean {
  if (statement.kind === "batch") return statement.statements.some(changesAnything);
  return !READS.has(statement.kind);
}

const READS: ReadonlySet<Statement["kind"]> = new Set(["select", "selectEdgeTypes", "explain", "union", "match"]);

export function definesAnything(statement: Statement): boolean {
  return ["createClass", "dropClass", "alterClass", "createEdgeType", "dropEdgeType"].includes(statement.kind);
}

/** Kind and target of a change, for the audit trail; contains no values. */
export function targetOf(statement: Statement): string {
  if (statement.kind === "batch") return statement.statements.filter(changesAnything).map(targetOf).join(", ");
  const name = "class" in statement ? statement.class.path : "name" in statement ? statement.name : "";
  return `${statement.kind} ${name}`.trimEnd();
}

/** The classes or other objects that a statement changes. */
export function classesOf(statement: Statement): readonly string[] {
  if (statement.kind === "batch") return statement.statements.filter(changesAnything).flatMap(classesOf);
  return "class" in statement ? [statement.class.path] : "name" in statement ? [statement.name] : [];
}

/**
 * Checks every execution now, and binds it again when its rows are taken, because a bound statement may take much
 * memory.
 */
async function select(statement: Select | Union | Match, context: PrepareContext): Promise<Prepared> {
  const [first = [], ...others] = context.executions;
  if (others.length > 0 && "cursor" in statement && statement.cursor)
    throw new AppError("invalid", "[Valid] CURSOR goes with one list of values.");
  const leftOut: LeftOut = { more: false };
  const steps = afterSteps(
    readingInSteps(statement, context, { values: first, leftOut }),
    planningOf(statement),
    context.slices,
  );
  const reading = steps instanceof Promise ? await steps : steps;
  const rows = reading.rows(runContext(context));
  requireFew(statement, context.executions);
  if (others.length > 0)
    await eachChecked(context, (values) =>
      readingOf(statement, context, { values, leftOut }).rows(runContext(context)),
    );
  return {
    meta: reading.meta,
    isRead: true,
    run: () => (others.length === 0 ? rows : allExecutions(statement, context, leftOut)),
    explain: () =>
      reading.describe(async (reads, counts) => [
        ...(await readSteps(reads, context)),
        ...(counts && (await areCounted(counts, context)) ? ["counted without rows"] : []),
      ]),
  };
}

async function* allExecutions(
  statement: Select | Union | Match,
  context: PrepareContext,
  leftOut: LeftOut,
): AsyncIterable<readonly Row[]> {
  for (const values of context.executions) {
    if (context.slices.isOverNow()) await context.slices.pause();
    yield* readingOf(statement, context, { values, leftOut }).rows(runContext(context));
  }
}

function readingOf(written: Select | Union | Match, context: PrepareContext, execution: Execution): Reading {
  return drained(readingInSteps(written, context, execution));
}

/** Characters of a statement for which a planning step costs as much as an ordinary row. */
const CHARACTERS_PER_ROW = 64;

/** Cost of one planning step of the statement, in ordinary rows. */
function planningOf({ span }: Statement): number {
  return (span.end - span.start) / CHARACTERS_PER_ROW;
}

function presentOf({ principal, catalog, nowMs }: PrepareContext, values: Arguments): Present {
  return { nowMs, values, zoneOf: (path) => calendarZone(principal, catalog, path) };
}

interface Execution {
  readonly values: Arguments;
  readonly leftOut: LeftOut;
}

/** Like `readingOf`, in steps. A step may take long if the conditions of the statement are long. */
function* readingInSteps(
  written: Select | Union | Match,
  context: PrepareContext,
  { values, leftOut }: Execution,
): Generator<undefined, Reading> {
  const { principal, catalog, objects } = context;
  const statement = settled(written, presentOf(context, values));
  // A statement in which nothing has to be settled is short, and contains no other SELECT.
  if (statement === written && statement.kind === "select")
    return plannedAtOnce(statement, principal, { catalog, values, leftOut, isRepeated: true });
  yield;
  if (statement.kind !== "match") return yield* planInSteps(statement, principal, { catalog, values, leftOut });
  const whole = (match: Match): Reading => planGraph(match, { principal, catalog, objects, values });
  const inner = (part: Select): Reading => planReading(part, principal, { catalog, values });
  return readingWithSubSelects(statement, { whole, inner }) ?? whole(statement);
}

function edgeTypes(context: PrepareContext): Prepared {
  const columns = ["name", "remedy"].map((name): ColumnMeta => ({ name, title: name, type: "varchar" }));
  const rows = context.catalog.edgeTypes().map(({ name, remedy }): Row => ({ name, remedy }));
  const meta = plainMeta("select edge", "", columns);
  return {
    meta,
    isRead: true,
    run: () => Promise.resolve(one(rows)),
    explain: () => Promise.resolve(["table of edge types"]),
  };
}

async function insert(statement: Insert | InsertJson, context: PrepareContext): Promise<Prepared> {
  const works = await inSlices(
    statement.kind === "insert" ? bindInsert(statement, context) : bindInsertJson(statement, context),
    context.slices,
    context.memory,
  );
  const rootclass = works[0]?.view.path ?? "";
  const unstored = new UnstoredRows();
  return {
    meta: plainMeta("insert", rootclass, [COUNT_COLUMN, IDS_COLUMN]),
    isRead: false,
    repeatable: repeatableInsert(works, { ...writeContext(context, []), unstored }),
    relations: insertedRelations(works),
    warnings: () => unstored.warnings(),
    async run() {
      const ids = await runInsert(works, { ...writeContext(context, []), unstored }, context.slices);
      return one([{ count: ids.length, ids }]);
    },
    explain: () => Promise.resolve(works.map((work) => `insert ${work.rows.length} into ${work.view.path}`)),
  };
}

async function change(
  type: "update" | "delete",
  statement: Update | Delete,
  context: PrepareContext,
): Promise<Prepared> {
  const { executions, catalog, slices } = context;
  const [first = []] = executions;
  const only = bindChange(statement, context, first);
  requireFew(statement, executions);
  await eachChecked(context, (values) => bindChange(statement, context, values));
  const relations = [...(only.relations ?? [])];
  return {
    meta: plainMeta(type, statement.class.path, [COUNT_COLUMN]),
    isRead: false,
    repeatable:
      executions.length === 1 ? repeatableChange(only, { ...writeContext(context, first), catalog }) : undefined,
    relations,
    async run() {
      const rows: Row[] = [];
      for (const values of executions) {
        if (slices.isOverNow()) await slices.pause();
        const bound = values === first ? only : bindChange(statement, context, values);
        rows.push({ count: await bound.run(writeContext(context, values)) });
        if (bound !== only) relations.push(...(bound.relations ?? []));
      }
      return one(rows);
    },
    async explain() {
      const scope = scopeOf(context.principal, catalog, statement.class).following();
      const { computed = [], follows, asks } = only;
      const { where } = asks?.unanswered ?? settled(statement, presentOf(context, first));
      const { own } = splitCondition(where, scope);
      const reads = readsOf(scope, own, { values: first, veiled: true });
      return [
        ...((await asks?.describe((inner) => readSteps(inner, context))) ?? []),
        ...(await readSteps(reads, context)),
        ...(own ? [`filter ${printCondition(own)}`] : []),
        ...(follows ? describeFollowing(follows) : []),
        `${type} what is found`,
        ...(computed.length > 0 ? [`set ${computed.join(", ")} by each object as it is then`] : []),
      ];
    },
  };
}

function bindChange(written: Update | Delete, context: PrepareContext, values: Arguments): Change {
  const { principal, catalog } = context;
  const statement = settled(written, presentOf(context, values));
  const bind = (whole: Update | Delete): Change => boundChange(whole, context, values);
  const inner = (part: Select): Reading => planReading(part, principal, { catalog, values });
  return askingChange(statement, { bind, inner }) ?? bind(statement);
}

function boundChange(statement: Update | Delete, { principal, catalog }: PrepareContext, values: Arguments): Change {
  const scope = scopeOf(principal, catalog, statement.class);
  if (statement.kind === "update") return bindUpdate(statement, { scope, values });
  if (statement.column !== undefined) return bindClear(statement, statement.column, { scope, values });
  return bindDelete(statement, scope, values);
}

type Definition = Extract<
  Statement,
  { kind: "createClass" | "dropClass" | "alterClass" | "createEdgeType" | "dropEdgeType" }
>;

const DEFINITION_TYPES: Readonly<Record<Definition["kind"], StatementType>> = {
  createClass: "create",
  dropClass: "drop",
  alterClass: "alter",
  createEdgeType: "create edgetype",
  dropEdgeType: "drop edge",
};

function definition(statement: Definition, context: PrepareContext): Prepared {
  const work = definitionWork(statement, context);
  const rootclass = "class" in statement ? statement.class.path : "";
  return {
    meta: plainMeta(DEFINITION_TYPES[statement.kind], rootclass),
    isRead: false,
    async run() {
      await work();
      return one([]);
    },
    explain: () =>
      Promise.resolve([
        `${DEFINITION_TYPES[statement.kind]} ${rootclass === "" && "name" in statement ? statement.name : rootclass}`,
      ]),
  };
}

/** Checks the right to define now, so that a script or batch is refused before its first change. Returns the work. */
function definitionWork(statement: Definition, context: PrepareContext): () => Promise<unknown> {
  const { principal, objects, catalog } = context;
  switch (statement.kind) {
    case "createClass": {
      const spec = classSpec(statement, context.executions[0] ?? []);
      makesClass(principal, spec.path, {
        isKnown: catalog.get(spec.path) !== undefined,
        ifNotExists: statement.ifNotExists,
      });
      return () => objects.createClass(principal, spec, { ifNotExists: statement.ifNotExists });
    }
    case "dropClass":
      if (!statement.ifExists || classAccess(principal, statement.class.path).readable)
        requireDefiner(principal, statement.class.path);
      // Comes before the check that the class is empty, because that check blocks writes to the class for a while.
      if (catalog.get(statement.class.path)?.system)
        throw new AppError(
          "denied",
          `[Valid] class ${statement.class.path} belongs to the platform and cannot be dropped.`,
        );
      return () => objects.dropClass(principal, statement.class.path, { ifExists: statement.ifExists });
    case "alterClass": {
      requireDefiner(principal, statement.class.path);
      scopeOf(principal, catalog, { ...statement.class, subtree: false });
      const alteration = classChange(statement, context.executions[0] ?? []);
      return () => objects.alterClass(principal, statement.class.path, alteration);
    }
    case "createEdgeType": {
      const type = { name: statement.name, remedy: statement.remedy ?? "" };
      makesEdgeType(principal, {
        isKnown: catalog.edgeTypes().some(({ name }) => name === type.name),
        ifNotExists: statement.ifNotExists,
      });
      return () => objects.createEdgeType(principal, type, { ifNotExists: statement.ifNotExists });
    }
    case "dropEdgeType":
      requireDefining(principal, principal.ospace);
      return () => objects.dropEdgeType(principal, statement.name, { ifExists: statement.ifExists });
  }
}

const STEP_COLUMNS: readonly ColumnMeta[] = [
  { name: "step", title: "step", type: "int" },
  { name: "work", title: "work", type: "varchar" },
  { name: "estimated", title: "estimated", type: "bigint" },
];

async function explain(statement: Explain, context: PrepareContext): Promise<Prepared> {
  if (statement.analyzes) return analyze(statement, context);
  const inner = await prepare(statement.statement, context);
  return {
    meta: plainMeta("explain", inner.meta.rootclass, STEP_COLUMNS),
    isRead: true,
    async run() {
      return one((await inner.explain()).map((step, index): Row => ({ step: index + 1, ...planned(step) })));
    },
    explain: () => inner.explain(),
  };
}

async function analyze({ statement }: Explain, context: PrepareContext): Promise<Prepared> {
  requireReading(statement);
  const measures = new Measures(context);
  const inner = await prepare(statement, { ...context, measures });
  return {
    meta: plainMeta("explain", inner.meta.rootclass, ANALYZED_COLUMNS),
    isRead: true,
    run: async () => measures.run(await inner.explain(), () => inner.run()),
    explain: () => inner.explain(),
  };
}

/** Only for EXPLAIN of a batch. The service runs a batch itself. */
async function batch(statement: Batch, context: PrepareContext): Promise<Prepared> {
  const { slices } = context;
  const parts: Prepared[] = [];
  for (const part of statement.statements) {
    if (slices.isOverNow()) await slices.pause();
    parts.push(await prepare(part, context));
  }
  return {
    meta: parts.at(-1)?.meta ?? plainMeta("select"),
    isRead: parts.every((part) => part.isRead),
    async run() {
      let rows = one<Row>([]);
      for (const part of parts) rows = await part.run();
      return rows;
    },
    async explain() {
      const lines: PlanStep[] = [];
      for (const part of parts) {
        if (slices.isOverNow()) await slices.pause();
        lines.push(...(await part.explain()));
      }
      return lines;
    },
  };
}

async function readSteps(reads: readonly ReadRequest[], context: PrepareContext): Promise<readonly PlanStep[]> {
  const steps: PlanStep[] = [];
  for (const read of reads) {
    if (readsSchema(read, context)) {
      steps.push("table of classes");
      continue;
    }
    const [first, ...others] = (await context.objects.unrestricted.explain(context.principal, read)).steps;
    const estimated = await estimatedOf(read, context);
    context.measures?.expect(read, estimated);
    if (first !== undefined) steps.push(estimated === undefined ? first : { work: first, estimated }, ...others);
  }
  return steps;
}

/** Estimates count all objects, so only a principal who sees every row and column of the tenant may see them. */
async function estimatedOf(
  read: ReadRequest,
  { principal, catalog, objects }: PrepareContext,
): Promise<number | undefined> {
  return seesAll(principal, catalog.tree("/")) ? objects.unrestricted.estimate(principal, read) : undefined;
}

async function areCounted(counts: readonly CountRequest[], context: PrepareContext): Promise<boolean> {
  const { objects, principal } = context;
  const counted = (request: CountRequest) => objects.unrestricted.count(principal, request);
  for (const request of counts) if (readsSchema(request, context) || !(await counted(request))) return false;
  return true;
}

function runContext(context: PrepareContext): RunContext {
  const { principal, objects, catalog, clock, signal, sortFolder, measures, slices } = context;
  const { tenant, zones } = slices;
  return {
    tenant,
    zones,
    clock,
    signal,
    sortFolder,
    objects,
    steps: measures,
    read(request) {
      if (readsSchema(request, context)) return one<ObjectRow>(schemaRows(principal, catalog));
      const pages = objects.unrestricted.read(principal, request);
      return measures ? measures.read(request, pages) : pages;
    },
    async inOrder(request) {
      if (readsSchema(request, context)) return undefined;
      const found = await objects.unrestricted.inOrder(principal, request);
      return found && measures ? { ...found, pages: measures.read(request, found.pages) } : found;
    },
    async count(request) {
      if (readsSchema(request, context)) return undefined;
      const counts = await objects.unrestricted.count(principal, request);
      return counts && measures ? measures.count(request, counts) : counts;
    },
  };
}

function writeContext(context: PrepareContext, values: Arguments): WriteContext {
  return { ...runContext(context), objects: context.objects, values };
}

function readsSchema(request: Pick<ReadRequest, "class">, { catalog }: PrepareContext): boolean {
  const view = request.class === SCHEMA_CLASS_PATH ? catalog.get(request.class) : undefined;
  return view !== undefined && isSchemaClass(view);
}

export async function* one<T>(rows: readonly T[]): AsyncIterable<readonly T[]> {
  if (rows.length > 0) yield await Promise.resolve(rows);
}
