import type { ClassView, Column } from "../objects/index.ts";

export interface ExportRequest {
  /** Path of a class; with a slash at its end, the subclasses are included. Absent: the whole tenant. */
  readonly class?: string;
  readonly recursive?: boolean;
  /**
   * Maximum number of objects per class; those with the smallest ids are exported. 0: definitions only. Absent or
   * negative: no limit.
   */
  readonly limit?: number;
  /** Columns and edge types to leave out. */
  readonly ignoredFields?: readonly string[];
  /** Paths to leave out, with their subclasses. */
  readonly ignoredClasses?: readonly string[];
  /** True: includes the definitions of the edge types. */
  readonly relations?: boolean;
  /** True: includes the times of objects, their earlier states and removals. */
  readonly times?: boolean;
  readonly signal?: AbortSignal;
}

/** A class of an export, limited to what the principal may see and to what the request includes. */
export interface ExportedClass {
  readonly view: ClassView;
  /** The exported columns of the class, inherited ones first. */
  readonly columns: readonly Column[];
  /** Those of the columns that no superclass in the export defines. */
  readonly ownColumns: readonly Column[];
  /**
   * Columns that the platform adds to records. Scripts contain their values, so that an import restores the marks of
   * records.
   */
  readonly recordColumns: readonly Column[];
  readonly ownKeys: readonly string[];
  readonly ownIndexes: readonly string[];
  /** False if only the definition is exported, because subclasses inherit from the class. */
  readonly hasRows: boolean;
}

export type TransferState = "running" | "done" | "failed";

/** The state of an import that has begun to write. */
export interface TransferReport {
  readonly id: string;
  readonly state: TransferState;
  /** Number of statements. */
  readonly total: number;
  readonly done: number;
  readonly message: string;
}

/** A place in an upload: `line 3 column 7` or `sheet box cell C5`. */
export type Place = string;
