import type { ClassView, Column } from "../objects/index.ts";

export interface ExportRequest {
  /** A class path; a slash at its end includes the subclasses. Absent: the whole tenant. */
  readonly class?: string;
  readonly recursive?: boolean;
  /** Maximum number of objects per class, the first by id. 0: definitions only. Absent or negative: all. */
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

/** A class, limited to what the principal may see and the request includes. */
export interface ExportedClass {
  readonly view: ClassView;
  /** All columns of the class, inherited ones first. */
  readonly columns: readonly Column[];
  /** Columns that no earlier class of the export defines. */
  readonly ownColumns: readonly Column[];
  /** Columns that the platform keeps of records. A script has their values, so that marked records come back as they are. */
  readonly recordColumns: readonly Column[];
  readonly ownKeys: readonly string[];
  readonly ownIndexes: readonly string[];
  /** False if the class is included only because subclasses inherit from it. */
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
