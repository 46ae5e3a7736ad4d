import type { ClassView, Column } from "../objects/index.ts";

export interface ExportRequest {
  /** A path; with a slash at its end with its subclasses. The whole tenant when absent. */
  readonly class?: string;
  readonly recursive?: boolean;
  /** Objects of each class at most, the first by id; 0 is definitions only, absent or below 0 all. */
  readonly limit?: number;
  /** Columns and edge types that are left out. */
  readonly ignoredFields?: readonly string[];
  /** Paths that are left out with their subclasses. */
  readonly ignoredClasses?: readonly string[];
  /** Defines the edge types as well. */
  readonly relations?: boolean;
  /** With the times of objects, their earlier states and removals. */
  readonly times?: boolean;
  readonly signal?: AbortSignal;
}

/** A class as far as the principal sees it and the request wants it. */
export interface ExportedClass {
  readonly view: ClassView;
  /** All of the class, inherited ones first. */
  readonly columns: readonly Column[];
  /** Those that no class before it in the export defines. */
  readonly ownColumns: readonly Column[];
  /** Columns that the platform keeps of records. A script has their values, so that marked records come back as they are. */
  readonly recordColumns: readonly Column[];
  readonly ownKeys: readonly string[];
  readonly ownIndexes: readonly string[];
  /** False for what is there only because subclasses inherit from it. */
  readonly hasRows: boolean;
}

/** How far a transfer is. */
export type TransferState = "running" | "done" | "failed";

/** The state of an import that has begun to write. */
export interface TransferReport {
  readonly id: string;
  readonly state: TransferState;
  /** Statements. */
  readonly total: number;
  readonly done: number;
  readonly message: string;
}

/** Where something stands in an upload: `line 3 column 7` or `sheet box cell C5`. */
export type Place = string;
