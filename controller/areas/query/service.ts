import { AppError } from "../../../common/errors.ts";
import { QUERY_COLLECT_MAX_ROWS, QUERY_VALUE_ROWS_MAX } from "../../../common/limits.ts";
import { NOWHERE, type Script, type Statement } from "../../../common/mql/index.ts";
import type { Row, Value } from "../../../common/value.ts";
import type { Runtime } from "../../runtime.ts";
import type { Audit } from "../audit/index.ts";
import type { Objects } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { audited } from "./audited.ts";
import type { Arguments } from "./literal.ts";
import { ParsedTexts } from "./parsed.ts";
import { about, aboutLater, located } from "./placing.ts";
import { changesAnything, definesAnything, type Prepared, prepare, type PrepareContext, targetOf } from "./statement.ts";
import { withSchemaClass } from "./schema-class.ts";
import type { Query, QueryOptions, QueryResult } from "./types.ts";

export interface QueryDependencies {
  readonly objects: Objects;
  readonly runtime: Pick<Runtime, "clock">;
  /** Told of every statement that changes something, also of those that are refused. */
  readonly audit?: Pick<Audit, "ready" | "write">;
  /** Where sorts may put what memory should not hold; absent: they are refused beyond `QUERY_SORT_MAX_ROWS`. */
  readonly sortFolder?: string;
}

export class QueryService implements Query {
  readonly #objects: Objects;
  readonly #runtime: Pick<Runtime, "clock">;
  readonly #audit: Pick<Audit, "ready" | "write"> | undefined;
  readonly #sortFolder: string | undefined;
  readonly #texts = new ParsedTexts();

  constructor({ objects, runtime, audit, sortFolder }: QueryDependencies) {
    this.#sortFolder = sortFolder;
    this.#objects = objects;
    this.#runtime = runtime;
    this.#audit = audit;
  }

  async run(principal: Principal, text: string, options: QueryOptions = {}): Promise<QueryResult> {
    const script = paged(this.#texts.parsed(text), options.cursor);
    try {
      return await this.#runAudited(principal, script, options);
    } catch (error) {
      throw located(error, text, script.statements.length);
    }
  }

  async #runAudited(principal: Principal, script: Script, options: QueryOptions): Promise<QueryResult> {
    const executions = executionsOf(script, options.values);
    const changes = script.statements.filter(changesAnything);
    if (changes.length === 0) return this.#runScript(script, executions, { principal, signal: options.signal });
    const action = `MQL ${[...new Set(changes.map(targetOf))].slice(0, 20).join(", ")}`;
    return audited({ audit: this.#audit, principal, action }, () => this.#runScript(script, executions, { principal, signal: options.signal }));
  }

  async rows(principal: Principal, text: string, values?: readonly Value[]): Promise<readonly Row[]> {
    const result = await this.run(principal, text, values ? { values: [values] } : {});
    const rows: Row[] = [];
    for await (const page of result.rows) {
      rows.push(...page);
      if (rows.length <= QUERY_COLLECT_MAX_ROWS) continue;
      throw new AppError("too_large", `[Exec] The answer has more than ${QUERY_COLLECT_MAX_ROWS} rows.`, { details: { limit: "QUERY_COLLECT_MAX_ROWS" } });
    }
    return rows;
  }

  /** Answers what the last statement answers; reads before it are only checked. */
  async #runScript(script: Script, executions: readonly Arguments[], caller: Caller): Promise<QueryResult> {
    const last = script.statements.length - 1;
    let result: QueryResult | undefined;
    for (const [index, statement] of script.statements.entries()) {
      result = await this.#runStatement(statement, executions, { ...caller, isLast: index === last });
    }
    if (!result) throw new AppError("syntax", "[Parser] at line 1 column 1: expected a statement but found the end.", { details: { line: 1, column: 1 } });
    return result;
  }

  async #runStatement(statement: Statement, executions: readonly Arguments[], caller: Caller & { readonly isLast: boolean }): Promise<QueryResult> {
    if (statement.kind === "batch") return this.#runBatch(statement.statements, executions, caller);
    const context = await this.#context(caller, executions);
    return this.#runPrepared({ statement, prepared: about(statement.span, () => prepare(statement, context)) }, caller);
  }

  async #runPrepared({ statement, prepared }: PreparedStatement, caller: { readonly isLast: boolean }): Promise<QueryResult> {
    const rows = prepared.isRead && !caller.isLast ? nothing() : await aboutLater(statement.span, () => prepared.run());
    return { meta: prepared.meta, rows };
  }

  /** Wholly checked before its first write, except that what follows a definition can be checked only after it. */
  async #runBatch(statements: readonly Statement[], executions: readonly Arguments[], caller: Caller & { readonly isLast: boolean }): Promise<QueryResult> {
    if (statements.some((statement) => statement.kind === "batch" || definesAnything(statement))) {
      return this.#runScript({ kind: "script", statements, placeholders: 0, span: NOWHERE }, executions, caller);
    }
    const context = await this.#context(caller, executions);
    const prepared = statements.map((statement) => ({ statement, prepared: about(statement.span, () => prepare(statement, context)) }));
    let result: QueryResult | undefined;
    for (const [index, one] of prepared.entries()) {
      result = await this.#runPrepared(one, { isLast: caller.isLast && index === prepared.length - 1 });
    }
    return result ?? { meta: { type: "select", classes: {}, columns: {}, rootclass: "" }, rows: nothing() };
  }

  async #context(caller: Caller, executions: readonly Arguments[]): Promise<PrepareContext> {
    const catalog = withSchemaClass(await this.#objects.catalog(caller.principal));
    return { ...caller, catalog, executions, objects: this.#objects, clock: this.#runtime.clock, sortFolder: this.#sortFolder };
  }
}

interface PreparedStatement {
  readonly statement: Statement;
  readonly prepared: Prepared;
}

interface Caller {
  readonly principal: Principal;
  readonly signal: AbortSignal | undefined;
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
    throw new AppError("too_large", `[Valid] At most ${QUERY_VALUE_ROWS_MAX} lists of values.`, { details: { limit: "QUERY_VALUE_ROWS_MAX" } });
  }
  if (executions.length > 1 && (script.statements.length > 1 || script.statements[0]?.kind === "batch")) {
    throw new AppError("invalid", "[Valid] Several lists of values go with one statement only.");
  }
  for (const execution of executions) {
    if (execution.length === script.placeholders) continue;
    throw new AppError("invalid", `[Valid] The text has ${script.placeholders} placeholders, but ${execution.length} values were given.`);
  }
  return executions;
}

function nothing(): AsyncIterable<readonly Row[]> {
  return { [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }) };
}
