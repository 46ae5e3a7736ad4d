import type { At, Condition, ValueNode, Count } from "./reading.ts";

// Graph

export interface Match extends At {
  readonly kind: "match";
  readonly chains: readonly Chain[];
  /** Condition on named nodes, `m.size > 1`; on the start nodes if no name is given. */
  readonly where: Condition | undefined;
  readonly pathMode: PathMode | undefined;
  /** Tags listed after `path`. */
  readonly pathTags: readonly string[];
  readonly returns: readonly string[];
  readonly until: string | undefined;
  readonly diff: ValueNode | undefined;
  readonly asOf: ValueNode | undefined;
}

export type PathMode = "short" | "long" | "all" | "detail" | "back" | "any";

export interface Chain extends At {
  readonly kind: "chain";
  readonly start: GraphNode;
  readonly steps: readonly GraphStep[];
}

export interface GraphStep extends At {
  readonly kind: "step";
  readonly direction: "out" | "in" | "both";
  /** Absent: edges of any type. */
  readonly type: string | undefined;
  /** Maximum number of steps; `any`: unlimited. */
  readonly depth: number | "any";
  readonly node: GraphNode;
}

export interface GraphNode extends At {
  readonly kind: "node";
  readonly name: string | undefined;
  /** Ids, or patterns for ids. */
  readonly ids: readonly string[];
  /** A path, with a trailing slash if it includes subclasses, or the last component of a path. */
  readonly class: string | undefined;
  readonly where: Condition | undefined;
  readonly limit: Count | undefined;
}
