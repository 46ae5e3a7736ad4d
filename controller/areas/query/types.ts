import type { Row, Value } from "../../../common/value.ts";
import type { Principal } from "../permissions/index.ts";

/** Kinds of statements, as clients know them. */
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
  /** For a page: where the next one begins. Known when all rows are taken; absent on the last page. */
  readonly cursor?: string | undefined;
  /** The usual limit left rows out. Known with the first rows; absent when none were, and where a limit was given. */
  readonly more?: true | undefined;
  /** For a search with `debug>`: the steps of its plan, one line each. */
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
  /** Rows of the script's last statement. Changes are made before this is answered. */
  readonly rows: AsyncIterable<readonly Row[]>;
  /** Work that was done but may be a mistake, such as a relation to an object that is not there. */
  readonly warnings?: readonly string[];
}

export interface QueryOptions {
  /** For `?` placeholders: one list per execution of a single statement. */
  readonly values?: readonly (readonly Value[])[];
  /** For a single SELECT: as if it ended with `CURSOR '…'`. */
  readonly cursor?: string;
  readonly signal?: AbortSignal;
}

/** MQL. Every plan applies the principal's row conditions and hidden columns. */
export interface Query {
  /** A text of the caller's own. */
  run(principal: Principal, text: string, options?: QueryOptions): Promise<QueryResult>;
  /**
   * All rows at once, for services that ask a text of theirs and checked their own permission; `AppError("too_large")`
   * past `QUERY_COLLECT_MAX_ROWS`.
   */
  rows(principal: Principal, text: string, values?: readonly Value[]): Promise<readonly Row[]>;
}
