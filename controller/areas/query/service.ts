import { AppError } from "../../../common/errors.ts";
import { QUERY_COLLECT_MAX_ROWS } from "../../../common/limits.ts";
import type { Batch, Script, Statement } from "../../../common/mql/index.ts";
import type { Row, Value } from "../../../common/value.ts";
import type { Runtime } from "../../runtime.ts";
import type { EntryInCommit } from "../audit/index.ts";
import type { ClassCatalog, Objects } from "../objects/index.ts";
import { allows, classAccess, requireOneOf, requirePermission, type Principal } from "../permissions/index.ts";
import { audited, NAMES_APART, toldOf, type QueryAudit } from "./audited.ts";
import type { BatchChange, OpenBatch } from "./batch/run.ts";
import { BatchRuns, type BatchDependencies } from "./batch/runs.ts";
import { batchAt, batchChanges, flat } from "./batch/statements.ts";
import type { Arguments } from "./expressions/literal.ts";
import { type MemoryShare, PROCESS_MEMORY } from "./expressions/aggregates/memory.ts";
import { located, placed } from "./expressions/placing.ts";
import { executionsOf } from "./statements/executions.ts";
import { withSchemaClass } from "./plan/names/schema-class.ts";
import { ParsedTexts } from "./run/parsed.ts";
import { Slices } from "./run/slice.ts";
import { prepare } from "./statements/prepare.ts";
import { one, type Prepared, type PrepareContext, type PreparedStatement } from "./statements/prepared.ts";
import { changesAnything, definesAnything } from "./statements/targets.ts";
import type { Query, QueryOptions, QueryResult } from "./types.ts";
import { WrittenRelations } from "./write/missing-ends.ts";

export interface QueryDependencies {
  readonly objects: Objects;
  readonly runtime: Pick<Runtime, "clock">;
  /** Receives an entry for every statement that changes something, even if it is refused. */
  readonly audit?: QueryAudit;
  /** Folder for sorts that exceed memory. Absent: they are refused beyond `QUERY_SORT_MAX_ROWS`. */
  readonly sortFolder?: string;
  /** Records batches before they are executed. Absent: they are checked and executed without a record. */
  readonly batches?: Pick<BatchDependencies, "stores" | "controllers" | "objects" | "runtime">;
}

export class QueryService implements Query {
  readonly #objects: Objects;
  readonly #runtime: Pick<Runtime, "clock">;
  readonly #audit: QueryAudit | undefined;
  readonly #sortFolder: string | undefined;
  readonly #texts = new ParsedTexts();
  readonly #batches: BatchRuns | undefined;

  constructor({ objects, runtime, audit, sortFolder, batches }: QueryDependencies) {
    this.#sortFolder = sortFolder;
    this.#objects = objects;
    this.#runtime = runtime;
    this.#audit = audit;
    this.#batches = batches && new BatchRuns({ ...batches, audit, changesOf: (open) => this.#changesOf(open) });
  }

  async run(principal: Principal, text: string, options: QueryOptions = {}): Promise<QueryResult> {
    requirePermission(principal, "objects:read");
    return this.#run(principal, text, options);
  }

  async #run(principal: Principal, text: string, options: QueryOptions): Promise<QueryResult> {
    const memory = PROCESS_MEMORY.share(principal.tenant);
    try {
      return await this.#runHolding(principal, text, { options, memory });
    } finally {
      memory.close();
    }
  }

  /**
   * `memory` counts what is held until this resolves. What is held while rows are taken counts separately; of the
   * text's tree that is one statement.
   */
  async #runHolding(
    principal: Principal,
    text: string,
    { options, memory }: { readonly options: QueryOptions; readonly memory: MemoryShare },
  ): Promise<QueryResult> {
    const slices = this.#slices(principal, options.signal);
    const parsed = this.#texts.parsed(text, slices, memory);
    const script = paged(parsed instanceof Promise ? await parsed : parsed, options.cursor);
    const relations = new WrittenRelations();
    try {
      const told: string[] = [];
      const caller = { principal, text, signal: options.signal, slices, memory, relations, warnings: told };
      const result = await this.#runAudited(script, caller, options.values);
      if (told.length === 0 && relations.isEmpty) return result;
      const warnings = [...told, ...(await relations.warnings(principal, this.#objects))];
      return warnings.length > 0 ? { ...result, warnings } : result;
    } catch (error) {
      throw located(error, text, script.statements.length);
    }
  }

  #runAudited(script: Script, caller: Caller, values: QueryOptions["values"]): Promise<QueryResult> {
    const executions = executionsOf(script, values);
    if (!script.statements.some(changesAnything)) return this.#runScript(script, executions, caller);
    const [only, ...others] = script.statements;
    const isOneWrite = others.length === 0 && ONE_WRITE.has(only?.kind);
    const change = { audit: this.#audit, principal: caller.principal, isOneWrite, ...toldOf(script.statements) };
    return audited(change, (inCommit) => this.#runScript(script, executions, { ...caller, inCommit }));
  }

  /**
   * Continues batches without an owner. Call it regularly, and when a controller is gone; safe on several controllers.
   */
  async maintain(tenant: string): Promise<void> {
    await this.#batches?.maintain(tenant);
  }

  /** See `BegunWork.goesOn`. Returns the batches that change only classes that the principal may read. */
  async goesOn(principal: Principal, isTheirs: (username: string) => Promise<boolean>): Promise<readonly string[]> {
    requireOneOf(principal, ["users:write", "perms:write"]);
    if (!this.#batches || !allows(principal, "objects:read")) return [];
    const seen: string[] = [];
    const catalog = await this.#objects.catalog(principal);
    for await (const { id, object, principal: by } of this.#batches.open(principal.tenant)) {
      const isSeen = object
        .split(NAMES_APART)
        .every((path) => classAccess(principal, catalog.get(path) ?? path).readable);
      if (isSeen && (await isTheirs(by.user))) seen.push(`${id} (${object})`);
    }
    return seen;
  }

  /** Leaves unfinished batches to the next controller that finds them. */
  async close(): Promise<void> {
    await this.#batches?.close();
  }

  async rows(principal: Principal, text: string, values?: readonly Value[]): Promise<readonly Row[]> {
    const result = await this.#run(principal, text, values ? { values: [values] } : {});
    const rows: Row[] = [];
    for await (const page of result.rows) {
      rows.push(...page);
      if (rows.length <= QUERY_COLLECT_MAX_ROWS) continue;
      throw new AppError("too_large", `[Exec] The answer has more than ${QUERY_COLLECT_MAX_ROWS} rows.`, {
        details: { limit: "QUERY_COLLECT_MAX_ROWS" },
      });
    }
    return rows;
  }

  /** Returns the result of the last statement. Reads before it are checked, but not run. */
  async #runScript(script: Script, executions: readonly Arguments[], caller: Caller): Promise<QueryResult> {
    const last = script.statements.length - 1;
    let result: QueryResult | undefined;
    for (const [index, statement] of script.statements.entries()) {
      if (caller.slices.isOverNow()) await caller.slices.pause();
      result = await this.#runStatement(statement, executions, { ...caller, isLast: index === last });
    }
    if (!result)
      throw new AppError("syntax", "[Parser] at line 1 column 1: expected a statement but found the end.", {
        details: { line: 1, column: 1 },
      });
    return result;
  }

  async #runStatement(
    statement: Statement,
    executions: readonly Arguments[],
    caller: Caller & { readonly isLast: boolean },
  ): Promise<QueryResult> {
    if (statement.kind === "batch") return this.#runBatch(statement, executions, caller);
    const { principal } = caller;
    const catalog = this.#objects.catalogNow(principal) ?? (await this.#objects.catalog(principal));
    const context = this.#contextOf(caller, catalog, { executions });
    try {
      const preparing = prepare(statement, context);
      const prepared = preparing instanceof Promise ? await preparing : preparing;
      const result = this.#runPrepared(prepared, caller);
      return result instanceof Promise ? await result : result;
    } catch (error) {
      throw placed(error, statement.span);
    }
  }

  #runPrepared(
    prepared: Prepared,
    caller: Pick<Caller, "relations" | "warnings"> & { readonly isLast: boolean },
  ): QueryResult | Promise<QueryResult> {
    const done = (rows: QueryResult["rows"]): QueryResult => {
      caller.relations.add(prepared.relations ?? []);
      caller.warnings.push(...(prepared.warnings?.() ?? []));
      return { meta: prepared.meta, rows };
    };
    const running = prepared.isRead && !caller.isLast ? nothing() : prepared.run();
    return running instanceof Promise ? running.then(done) : done(running);
  }

  /**
   * Checks all statements of the batch before the first one writes. A batch that defines a class or an edge type runs
   * as a script instead, because later statements may need the definition: each is checked when its turn comes.
   */
  async #runBatch(
    batch: Batch,
    executions: readonly Arguments[],
    caller: Caller & { readonly isLast: boolean },
  ): Promise<QueryResult> {
    const statements = flat(batch.statements);
    if (statements.some(definesAnything))
      return this.#runScript({ ...batch, kind: "script", placeholders: 0 }, executions, caller);
    const context = await this.#context(caller, executions);
    const prepared = await preparedAll(statements, context);
    const { changes, isWhole } = batchChanges(prepared);
    if (this.#batches && changes.length > 0) {
      const values = executions[0] ?? [];
      if (isWhole) return this.#runJournalled({ batch, prepared, changes, values, startedMs: context.nowMs }, caller);
      await this.#batches.check(caller.principal, changes, caller.slices);
    }
    return this.#runOneByOne(prepared, caller);
  }

  async #runOneByOne(
    prepared: readonly PreparedStatement[],
    caller: Pick<Caller, "slices" | "relations" | "warnings"> & { readonly isLast: boolean },
  ): Promise<QueryResult> {
    let result: QueryResult | undefined;
    for (const [index, each] of prepared.entries()) {
      if (caller.slices.isOverNow()) await caller.slices.pause();
      const { relations, warnings } = caller;
      const isLast = caller.isLast && index === prepared.length - 1;
      try {
        result = await this.#runPrepared(each.prepared, { relations, warnings, isLast });
      } catch (error) {
        throw placed(error, each.statement.span);
      }
    }
    return result ?? { meta: { type: "select", classes: {}, columns: {}, rootclass: "" }, rows: nothing() };
  }

  async #runJournalled(
    { batch, prepared, changes, values, startedMs }: JournalledBatch,
    caller: Caller & { readonly isLast: boolean },
  ): Promise<QueryResult> {
    const { principal, text, signal, slices } = caller;
    const order = { principal, text, at: batch.span.start, values, startedMs, ...toldOf([batch]) };
    const answer = await this.#batches?.run(order, changes, { signal, slices });
    for (const each of prepared) {
      caller.relations.add(each.prepared.relations ?? []);
      caller.warnings.push(...(each.prepared.warnings?.() ?? []));
    }
    const last = prepared.at(-1);
    if (!last) throw new RangeError("a batch with changes has a last statement");
    return last.prepared.isRead
      ? this.#runOneByOne([last], caller)
      : { meta: last.prepared.meta, rows: one(answer ?? []) };
  }

  async #changesOf({ principal, text, at, values, startedMs, done }: OpenBatch): Promise<readonly BatchChange[]> {
    const slices = this.#slices(principal, undefined);
    const { statements } = await this.#texts.parsed(text, slices);
    const batch = batchAt(statements, at);
    if (!batch) throw new AppError("conflict", "[Exec] This version does not find the batch in its text.");
    const caller = { principal, signal: undefined, slices, memory: undefined };
    const context = await this.#context(caller, [values], startedMs);
    const { changes, isWhole } = batchChanges(
      await preparedAll(flat(batch.statements).filter(changesAnything).slice(done), context),
    );
    if (isWhole) return changes;
    throw new AppError("conflict", "[Exec] What the batch has still to change belongs to the platform by now.");
  }

  #slices({ tenant }: Principal, signal: AbortSignal | undefined): Slices {
    return new Slices({ tenant, clock: this.#runtime.clock, signal });
  }

  async #context(caller: ContextCaller, executions: readonly Arguments[], nowMs?: number): Promise<PrepareContext> {
    const catalog = await this.#objects.catalog(caller.principal);
    return this.#contextOf(caller, catalog, { executions, nowMs });
  }

  #contextOf(
    { principal, signal, slices, memory, inCommit }: ContextCaller,
    catalog: ClassCatalog,
    {
      executions,
      nowMs = this.#runtime.clock.nowMs(),
    }: Pick<PrepareContext, "executions"> & { readonly nowMs?: number },
  ): PrepareContext {
    const { clock } = this.#runtime;
    const own = { catalog: withSchemaClass(catalog), objects: this.#objects, clock, sortFolder: this.#sortFolder };
    return { ...own, executions, nowMs, principal, signal, slices, memory, inCommit };
  }
}

/** Statements that may be one write: each then gives its audit entry to the commit of that write. */
const ONE_WRITE: ReadonlySet<Statement["kind"] | undefined> = new Set(["insert", "insertJson", "update", "delete"]);

type ContextCaller = Pick<Caller, "principal" | "signal" | "slices" | "memory" | "inCommit">;

interface JournalledBatch {
  readonly batch: Batch;
  readonly prepared: readonly PreparedStatement[];
  readonly changes: readonly BatchChange[];
  readonly values: Arguments;
  readonly startedMs: number;
}

interface Caller {
  readonly principal: Principal;
  /** The whole text. */
  readonly text: string;
  readonly signal: AbortSignal | undefined;
  /** Time slices of all work before the rows are taken. */
  readonly slices: Slices;
  readonly memory: MemoryShare | undefined;
  /** Relations that the statements have written so far. */
  readonly relations: WrittenRelations;
  /** Warnings of the statements so far. */
  readonly warnings: string[];
  /** The entry for the commit of the only statement. */
  readonly inCommit?: EntryInCommit | undefined;
}

async function preparedAll(
  statements: readonly Statement[],
  context: PrepareContext,
): Promise<readonly PreparedStatement[]> {
  const prepared: PreparedStatement[] = [];
  for (const statement of statements) {
    if (context.slices.isOverNow()) await context.slices.pause();
    try {
      prepared.push({ statement, prepared: await prepare(statement, context) });
    } catch (error) {
      throw placed(error, statement.span);
    }
  }
  return prepared;
}

function paged(script: Script, cursor: string | undefined): Script {
  if (cursor === undefined) return script;
  const [statement] = script.statements;
  if (script.statements.length !== 1 || statement?.kind !== "select" || statement.cursor) {
    throw new AppError("invalid", "[Valid] A cursor goes with one SELECT that has none itself.");
  }
  return { ...script, statements: [{ ...statement, cursor: { kind: "text", value: cursor, span: statement.span } }] };
}

function nothing(): AsyncIterable<readonly Row[]> {
  return { [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }) };
}
