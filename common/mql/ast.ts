import type { At, Select, Union, SelectEdgeTypes } from "./ast/reading.ts";
import type {
  Insert,
  InsertJson,
  Update,
  Delete,
  CreateClass,
  DropClass,
  AlterClass,
  CreateEdgeType,
  DropEdgeType,
} from "./ast/changes.ts";
import type { Match } from "./ast/graph.ts";

/** The syntax tree: plain readonly nodes. Nodes of SELECT, and of values and conditions, are one file: each contains the other. */
export type * from "./ast/reading.ts";
export type * from "./ast/changes.ts";
export type * from "./ast/graph.ts";

export interface Script extends At {
  readonly kind: "script";
  readonly statements: readonly Statement[];
  /** Number of `?` placeholders. */
  readonly placeholders: number;
}

export type Statement =
  | Select
  | Union
  | SelectEdgeTypes
  | Insert
  | InsertJson
  | Update
  | Delete
  | CreateClass
  | DropClass
  | AlterClass
  | CreateEdgeType
  | DropEdgeType
  | Match
  | Batch
  | Explain;

// Around statements

export interface Batch extends At {
  readonly kind: "batch";
  readonly statements: readonly Statement[];
}

export interface Explain extends At {
  readonly kind: "explain";
  /** True: runs the statement and reports its reads and its duration. */
  readonly analyzes: boolean;
  readonly statement: Statement;
}
