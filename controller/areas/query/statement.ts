import { AppError } from "../../../common/errors.ts";
import type { Clock } from "../../../common/time.ts";
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
import type { Row } from "../../../common/value.ts";
import type { ClassCatalog, ObjectRow, Objects, ReadRequest } from "../objects/index.ts";
import { type Principal, requirePermission } from "../permissions/index.ts";
import { repeatableChange } from "./batch/found.ts";
import type { Repeatable } from "./batch/repeatable.ts";
import { repeatableInsert } from "./batch/rows.ts";
import { classChange, classSpec } from "./define.ts";
import { planGraph } from "./graph/reading.ts";
import { bindInsert, bindInsertJson, runInsert } from "./insert.ts";
import type { Arguments } from "./literal.ts";
import { plainMeta } from "./meta.ts";
import { readsOf } from "./plan.ts";
import { planReading, type Reading } from "./reading.ts";
import type { RunContext } from "./run.ts";
import { isSchemaClass, SCHEMA_CLASS_PATH, schemaRows } from "./schema-class.ts";
import { scopeOf } from "./scope.ts";
import { chained } from "./union.ts";
import { bindClear, bindDelete, bindUpdate, type Change, type WriteContext } from "./write.ts";
import type { ColumnMeta, QueryMeta, StatementType } from "./types.ts";

/** A statement whose names, values and rights are checked; nothing has been read or written yet. */
export interface Prepared {
  readonly meta: QueryMeta;
  readonly isRead: boolean;
  /** The same for a batch, so that it can be made again; absent where only the owners of what is changed know how. */
  readonly repeatable?: Repeatable | undefined;
  /** Does the work of a change at once; a read is done while its rows are taken. */
  run(): Promise<AsyncIterable<readonly Row[]>>;
  /** How it is going to be done, one line for each step; nothing is read or changed for it. */
  explain(): Promise<readonly string[]>;
}

export interface PrepareContext {
  readonly principal: Principal;
  readonly catalog: ClassCatalog;
  readonly objects: Objects;
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
  readonly executions: readonly Arguments[];
  readonly sortFolder: string | undefined;
}

const COUNT_COLUMN: ColumnMeta = { name: "count", title: "count", type: "bigint" };
const IDS_COLUMN: ColumnMeta = { name: "ids", title: "ids", type: "list" };

export function prepare(statement: Statement, context: PrepareContext): Prepared {
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
  return !["select", "selectEdgeTypes", "explain", "union", "match"].includes(statement.kind);
}

export function definesAnything(statement: Statement): boolean {
  return ["createClass", "dropClass", "alterClass", "createEdgeType", "dropEdgeType"].includes(statement.kind);
}

/** What a change is about, for the audit trail: never a value. */
export function targetOf(statement: Statement): string {
  if (statement.kind === "batch") return statement.statements.filter(changesAnything).map(targetOf).join(", ");
  const name = "class" in statement ? statement.class.path : "name" in statement ? statement.name : "";
  return `${statement.kind} ${name}`.trimEnd();
}

function select(statement: Select | Union | Match, context: PrepareContext): Prepared {
  const readings = context.executions.map((values) => readingOf(statement, context, values));
  const [reading] = readings;
  if (!reading) throw new RangeError("there is at least one execution");
  if (readings.length > 1 && "cursor" in statement && statement.cursor)
    throw new AppError("invalid", "[Valid] CURSOR goes with one list of values.");
  const run = runContext(context);
  const parts = readings.map((one) => one.rows(run));
  return {
    meta: reading.meta,
    isRead: true,
    run: () => Promise.resolve(chained(parts)),
    explain: () => reading.describe((reads) => readSteps(reads, context)),
  };
}

function readingOf(
  statement: Select | Union | Match,
  { principal, catalog, objects }: PrepareContext,
  values: Arguments,
): Reading {
  if (statement.kind === "match") return planGraph(statement, { principal, catalog, objects, values });
  return planReading(statement, principal, { catalog, values });
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

function insert(statement: Insert | InsertJson, context: PrepareContext): Prepared {
  const works = statement.kind === "insert" ? bindInsert(statement, context) : bindInsertJson(statement, context);
  const rootclass = works[0]?.view.path ?? "";
  return {
    meta: plainMeta("insert", rootclass, [COUNT_COLUMN, IDS_COLUMN]),
    isRead: false,
    repeatable: repeatableInsert(works, writeContext(context, [])),
    async run() {
      const ids = await runInsert(works, writeContext(context, []));
      return one([{ count: ids.length, ids }]);
    },
    explain: () => Promise.resolve(works.map((work) => `insert ${work.rows.length} into ${work.view.path}`)),
  };
}

function change(type: "update" | "delete", statement: Update | Delete, context: PrepareContext): Prepared {
  const changes = context.executions.map((values) => ({
    context: writeContext(context, values),
    change: bindChange(statement, context, values),
  }));
  const [only] = changes;
  return {
    meta: plainMeta(type, statement.class.path, [COUNT_COLUMN]),
    isRead: false,
    repeatable:
      only && changes.length === 1
        ? repeatableChange(only.change, { ...only.context, catalog: context.catalog })
        : undefined,
    async run() {
      const rows: Row[] = [];
      for (const each of changes) rows.push({ count: await each.change.run(each.context) });
      return one(rows);
    },
    async explain() {
      const scope = scopeOf(context.principal, context.catalog, statement.class);
      const reads = readsOf(scope, statement.where, { values: context.executions[0] ?? [], veiled: true });
      return [
        ...(await readSteps(reads, context)),
        ...(statement.where ? [`filter ${printCondition(statement.where)}`] : []),
        `${type} what is found`,
      ];
    },
  };
}

function bindChange(statement: Update | Delete, context: PrepareContext, values: Arguments): Change {
  const scope = scopeOf(context.principal, context.catalog, statement.class);
  if (statement.kind === "update")
    return bindUpdate(statement, { scope, values, edgeTypes: context.catalog.edgeTypes() });
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
  requirePermission(context.principal, "objects:write");
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

/** Classes the principal may not read do not exist for it, so that it cannot change or drop them either. */
function definitionWork(statement: Definition, context: PrepareContext): () => Promise<unknown> {
  const { principal, objects, catalog } = context;
  switch (statement.kind) {
    case "createClass": {
      const spec = classSpec(statement, context.executions[0] ?? []);
      return () => objects.createClass(principal, spec, { ifNotExists: statement.ifNotExists });
    }
    case "dropClass":
      if (catalog.get(statement.class.path)) scopeOf(principal, catalog, { ...statement.class, subtree: false });
      // Before it is asked whether the class is empty: for that nothing may be written into it for a while.
      if (catalog.get(statement.class.path)?.system)
        throw new AppError(
          "denied",
          `[Valid] class ${statement.class.path} belongs to the platform and cannot be dropped.`,
        );
      return () => objects.dropClass(principal, statement.class.path, { ifExists: statement.ifExists });
    case "alterClass": {
      scopeOf(principal, catalog, { ...statement.class, subtree: false });
      const alteration = classChange(statement, context.executions[0] ?? []);
      return () => objects.alterClass(principal, statement.class.path, alteration);
    }
    case "createEdgeType": {
      const type = { name: statement.name, remedy: statement.remedy ?? "" };
      return () => objects.createEdgeType(principal, type, { ifNotExists: statement.ifNotExists });
    }
    case "dropEdgeType":
      return () => objects.dropEdgeType(principal, statement.name, { ifExists: statement.ifExists });
  }
}

const STEP_COLUMNS: readonly ColumnMeta[] = [
  { name: "step", title: "step", type: "int" },
  { name: "work", title: "work", type: "varchar" },
];

function explain(statement: Explain, context: PrepareContext): Prepared {
  const inner = prepare(statement.statement, context);
  return {
    meta: plainMeta("explain", inner.meta.rootclass, STEP_COLUMNS),
    isRead: true,
    async run() {
      return one((await inner.explain()).map((work, index): Row => ({ step: index + 1, work })));
    },
    explain: () => inner.explain(),
  };
}

/** Of a batch that is only explained; the service runs batches statement by statement. */
function batch(statement: Batch, context: PrepareContext): Prepared {
  const parts = statement.statements.map((part) => prepare(part, context));
  return {
    meta: parts.at(-1)?.meta ?? plainMeta("select"),
    isRead: parts.every((part) => part.isRead),
    async run() {
      let rows = one<Row>([]);
      for (const part of parts) rows = await part.run();
      return rows;
    },
    async explain() {
      const lines: string[] = [];
      for (const part of parts) lines.push(...(await part.explain()));
      return lines;
    },
  };
}

async function readSteps(reads: readonly ReadRequest[], context: PrepareContext): Promise<readonly string[]> {
  const steps: string[] = [];
  for (const read of reads) {
    if (readsSchema(read, context)) steps.push("table of classes");
    else steps.push(...(await context.objects.plan(context.principal, read)).steps);
  }
  return steps;
}

function runContext(context: PrepareContext): RunContext {
  const { principal, objects, catalog, clock, signal, sortFolder } = context;
  return {
    tenant: principal.tenant,
    clock,
    signal,
    sortFolder,
    read: (request) =>
      readsSchema(request, context) ? one<ObjectRow>(schemaRows(principal, catalog)) : objects.read(principal, request),
  };
}

function writeContext(context: PrepareContext, values: Arguments): WriteContext {
  return { objects: context.objects, values, ...runContext(context) };
}

function readsSchema(request: ReadRequest, { catalog }: PrepareContext): boolean {
  const view = request.class === SCHEMA_CLASS_PATH ? catalog.get(request.class) : undefined;
  return view !== undefined && isSchemaClass(view);
}

export async function* one<T>(rows: readonly T[]): AsyncIterable<readonly T[]> {
  if (rows.length > 0) yield await Promise.resolve(rows);
}
