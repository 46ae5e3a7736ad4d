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
  /** Cursor of the next page. Known after all rows are taken; absent on the last page. */
  readonly cursor?: string | undefined;
  /**
   * True if the default limit left rows out. Known with the first rows. Absent if no rows were left out, or if the
   * statement has a limit.
   */
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
  /** Rows of the script's last statement. All changes are made before this is returned. */
  readonly rows: AsyncIterable<readonly Row[]>;
  /** Warnings about work that was done but may be a mistake, such as a relation to a missing object. */
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
  /** Runs a text of the caller. */
  run(principal: Principal, text: string, options?: QueryOptions): Promise<QueryResult>;
  /**
   * Returns all rows at once, for services that run a text of their own and have checked their own permission.
   * `AppError("too_large")` beyond `QUERY_COLLECT_MAX_ROWS`.
   */
  rows(principal: Principal, text: string, values?: readonly Value[]): Promise<readonly Row[]>;
}
