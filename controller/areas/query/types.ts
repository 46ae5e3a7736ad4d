import type { Row, Value } from "../../../common/value.ts";
import type { Principal } from "../permissions/index.ts";

/** What clients switch on. */
export type StatementType =
  | "select"
  | "select edge"
  | "insert"
  | "update"
  | "delete"
  | "create"
  | "drop"
  | "alter"
  | "create edgetype"
  | "drop edge"
  | "graph"
  | "path"
  | "explain";

export interface QueryMeta {
  readonly type: StatementType;
  /** Keyed by class path; members `name`, `alias`, `remedy`. */
  readonly classes: Readonly<Record<string, unknown>>;
  /** Keyed by class path. */
  readonly columns: Readonly<Record<string, readonly ColumnMeta[]>>;
  /** Class of the FROM clause; empty text when there is none. */
  readonly rootclass: string;
  /** Of a page: where the next one begins. Known when all rows are taken; absent when there is none. */
  readonly cursor?: string | undefined;
  /** Of a search with `debug>`: how it was done, one line for each step. */
  readonly plan?: readonly string[];
}

export interface ColumnMeta {
  readonly name: string;
  readonly title: string;
  readonly type: string;
  readonly enum?: Readonly<Record<string, readonly string[]>>;
}

export interface QueryResult {
  readonly meta: QueryMeta;
  /** Of the script's last statement. Statements that are no reads have done their work before this is answered. */
  readonly rows: AsyncIterable<readonly Row[]>;
}

export interface QueryOptions {
  /** For `?` placeholders: one list per execution of a single statement. */
  readonly values?: readonly (readonly Value[])[];
  /** Of a single SELECT, as if it ended with `CURSOR '…'`. */
  readonly cursor?: string;
  readonly signal?: AbortSignal;
}

/** MQL for everybody: row conditions and hidden columns of the principal are part of every plan. */
export interface Query {
  run(principal: Principal, text: string, options?: QueryOptions): Promise<QueryResult>;
  /** All rows at once, for callers inside the controller; `AppError("too_large")` past `QUERY_COLLECT_MAX_ROWS`. */
  rows(principal: Principal, text: string, values?: readonly Value[]): Promise<readonly Row[]>;
}
