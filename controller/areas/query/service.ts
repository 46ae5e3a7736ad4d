import { AppError } from "../../../common/errors.ts";
import { QUERY_COLLECT_MAX_ROWS, QUERY_VALUE_ROWS_MAX } from "../../../common/limits.ts";
import type { Batch, Script, Statement } from "../../../common/mql/index.ts";
import type { Row, Value } from "../../../common/value.ts";
import type { Runtime } from "../../runtime.ts";
import type { Audit } from "../audit/index.ts";
import type { Objects } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { audited } from "./audited.ts";
import type { BatchChange, OpenBatch } from "./batch/run.ts";
import { BatchRuns, type BatchDependencies } from "./batch/runs.ts";
import { batchAt, batchChanges, flat, type PreparedStatement } from "./batch/statements.ts";
import type { Arguments } from "./literal.ts";
import { ParsedTexts } from "./parsed.ts";
import { about, aboutLater, located } from "./placing.ts";
import { changesAnything, definesAnything, one, prepare, type PrepareContext, targetOf } from "./statement.ts";
import { withSchemaClass } from "./schema-class.ts";
import type { Query, QueryOptions, QueryResult } from "./types.ts";

export interface QueryDependencies {
  readonly objects: Objects;
  readonly runtime: Pick<Runtime, "clock">;
  /** Told of every statement that changes something, also of those that are refused. */
  readonly audit?: Pick<Audit, "ready" | "write">;
  /** Where sorts may put what memory should not hold; absent: they are refused beyond `QUERY_SORT_MAX_ROWS`. */
  readonly sortFolder?: string;
  /** What batches are put on record with before they are made; absent: they are checked and made without. */
  readonly batches?: Pick<BatchDependencies, "stores" | "controllers" | "objects" | "runtime">;
}

export class QueryService implements Query {
  readonly #objects: Objects;
  readonly #runtime: Pick<Runtime, "clock">;
  readonly #audit: Pick<Audit, "ready" | "write"> | undefined;
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
    const script = paged(this.#texts.parsed(text), options.cursor);
    try {
      return await this.#runAudited(script, { principal, text, signal: options.signal }, options.values);
    } catch (error) {
      throw located(error, text, script.statements.length);
    }
  }

  async #runAudited(script: Script, caller: Caller, values: QueryOptions["values"]): Promise<QueryResult> {
    const executions = executionsOf(script, values);
    if (!script.statements.some(changesAnything)) return this.#runScript(script, executions, caller);
    const change = { audit: this.#audit, principal: caller.principal, action: actionOf(script.statements) };
    return audited(change, () => this.#runScript(script, executions, caller));
  }

  /** Goes on with batches that nobody works on. To be called from time to time and when a controller went; safe on several controllers. */
  async maintain(tenant: string): Promise<void> {
    await this.#batches?.maintain(tenant);
  }

  /** Batches that are under way rest until somebody goes on with them. */
  async close(): Promise<void> {
    await this.#batches?.close();
  }

  async rows(principal: Principal, text: string, values?: readonly Value[]): Promise<readonly Row[]> {
    const result = await this.run(principal, text, values ? { values: [values] } : {});
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

  /** Answers what the last statement answers; reads before it are only checked. */
  async #runScript(script: Script, executions: readonly Arguments[], caller: Caller): Promise<QueryResult> {
    const { principal, text, signal } = caller;
    const last = script.statements.length - 1;
    let result: QueryResult | undefined;
    for (const [index, statement] of script.statements.entries()) {
      result = await this.#runStatement(statement, executions, { principal, text, signal, isLast: index === last });
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
    const context = await this.#context(caller, executions);
    return this.#runPrepared({ statement, prepared: about(statement.span, () => prepare(statement, context)) }, caller);
  }

  async #runPrepared(
    { statement, prepared }: PreparedStatement,
    caller: { readonly isLast: boolean },
  ): Promise<QueryResult> {
    const rows = prepared.isRead && !caller.isLast ? nothing() : await aboutLater(statement.span, () => prepared.run());
    return { meta: prepared.meta, rows };
  }

  /** Wholly checked before its first write, except that what follows a definition can be checked only after it. */
  async #runBatch(
    batch: Batch,
    executions: readonly Arguments[],
    caller: Caller & { readonly isLast: boolean },
  ): Promise<QueryResult> {
    const statements = flat(batch.statements);
    if (statements.some(definesAnything))
      return this.#runScript({ ...batch, kind: "script", placeholders: 0 }, executions, caller);
    const prepared = preparedAll(statements, await this.#context(caller, executions));
    const { changes, isWhole } = batchChanges(prepared);
    if (this.#batches && changes.length > 0) {
      if (isWhole) return this.#runJournalled({ batch, prepared, changes, values: executions[0] ?? [] }, caller);
      await this.#batches.check(caller.principal, changes);
    }
    return this.#runOneByOne(prepared, caller);
  }

  async #runOneByOne(
    prepared: readonly PreparedStatement[],
    caller: { readonly isLast: boolean },
  ): Promise<QueryResult> {
    let result: QueryResult | undefined;
    for (const [index, each] of prepared.entries()) {
      result = await this.#runPrepared(each, { isLast: caller.isLast && index === prepared.length - 1 });
    }
    return result ?? { meta: { type: "select", classes: {}, columns: {}, rootclass: "" }, rows: nothing() };
  }

  async #runJournalled(
    { batch, prepared, changes, values }: JournalledBatch,
    caller: Caller & { readonly isLast: boolean },
  ): Promise<QueryResult> {
    const { principal, text, signal } = caller;
    const order = { principal, text, at: batch.span.start, values, action: actionOf([batch]) };
    const answer = await this.#batches?.run(order, changes, signal);
    const last = prepared.at(-1);
    if (!last) throw new RangeError("a batch with changes has a last statement");
    return last.prepared.isRead
      ? this.#runPrepared(last, caller)
      : { meta: last.prepared.meta, rows: one(answer ?? []) };
  }

  async #changesOf({ principal, text, at, values, done }: OpenBatch): Promise<readonly BatchChange[]> {
    const batch = batchAt(this.#texts.parsed(text).statements, at);
    if (!batch) throw new AppError("conflict", "[Exec] This version does not find the batch in its text.");
    const context = await this.#context({ principal, text, signal: undefined }, [values]);
    const { changes, isWhole } = batchChanges(
      preparedAll(flat(batch.statements).filter(changesAnything).slice(done), context),
    );
    if (isWhole) return changes;
    throw new AppError("conflict", "[Exec] What the batch has still to change belongs to the platform by now.");
  }

  async #context(caller: Caller, executions: readonly Arguments[]): Promise<PrepareContext> {
    const catalog = withSchemaClass(await this.#objects.catalog(caller.principal));
    return {
      catalog,
      executions,
      objects: this.#objects,
      clock: this.#runtime.clock,
      sortFolder: this.#sortFolder,
      ...caller,
    };
  }
}

interface JournalledBatch {
  readonly batch: Batch;
  readonly prepared: readonly PreparedStatement[];
  readonly changes: readonly BatchChange[];
  readonly values: Arguments;
}

interface Caller {
  readonly principal: Principal;
  /** All of it. */
  readonly text: string;
  readonly signal: AbortSignal | undefined;
}

function preparedAll(statements: readonly Statement[], context: PrepareContext): readonly PreparedStatement[] {
  return statements.map((statement) => ({
    statement,
    prepared: about(statement.span, () => prepare(statement, context)),
  }));
}

/** What is changed, for the audit trail. */
function actionOf(statements: readonly Statement[]): string {
  return `MQL ${[...new Set(statements.filter(changesAnything).map(targetOf))].slice(0, 20).join(", ")}`;
}

function paged(script: Script, cursor: string | undefined): Script {
  if (cursor === undefined) return script;
  const [statement] = script.statements;
  if (script.statements.length !== 1 || statement?.kind !== "select" || statement.cursor) {
    throw new AppError("invalid", "[Valid] A cursor goes with one SELECT that has none itself.");
  }
  return { ...script, statements: [{ ...statement, cursor: { kind: "text", value: cursor, span: statement.span } }] };
}

function executionsOf(script: Script, values: readonly (readonly Value[])[] | undefined): readonly Arguments[] {
  const executions = values && values.length > 0 ? values : [[]];
  if (executions.length > QUERY_VALUE_ROWS_MAX) {
    throw new AppError("too_large", `[Valid] At most ${QUERY_VALUE_ROWS_MAX} lists of values.`, {
      details: { limit: "QUERY_VALUE_ROWS_MAX" },
    });
  }
  if (executions.length > 1 && (script.statements.length > 1 || script.statements[0]?.kind === "batch")) {
    throw new AppError("invalid", "[Valid] Several lists of values go with one statement only.");
  }
  for (const execution of executions) {
    if (execution.length === script.placeholders) continue;
    throw new AppError(
      "invalid",
      `[Valid] The text has ${script.placeholders} placeholders, but ${execution.length} values were given.`,
    );
  }
  return executions;
}

function nothing(): AsyncIterable<readonly Row[]> {
  return { [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }) };
}
