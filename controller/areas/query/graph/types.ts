import type { Row } from "../../../../common/value.ts";
import type { NodePattern } from "./patterns.ts";

/**
 * Identifies an object: there is one such value for each object of a MATCH. The id alone is not enough, because classes
 * may share it.
 */
export interface VertexRef {
  /** Unique for each object. */
  readonly number: number;
  readonly id: string;
  /** Path. */
  readonly class: string;
}

/**
 * An object of the MATCH. Its part of the answer and the patterns that it fits are computed when it is read, so the
 * rest need not be kept.
 */
export interface Vertex {
  readonly ref: VertexRef;
  /** Records have no edges of their own. */
  readonly isRecord: boolean;
  /** True if no path continues from here, unless it begins here. */
  readonly isEnd: boolean;
  readonly fits: ReadonlySet<NodePattern>;
  readonly shown: Row;
}

/** There is one such value for each edge, even if it was found from both of its ends. */
export interface GraphEdge {
  readonly type: string;
  readonly source: VertexRef;
  readonly target: VertexRef;
}

/** An edge in the direction in which a chain passes it, which can be against its own. */
export interface Link {
  readonly edge: GraphEdge;
  readonly from: Vertex;
  readonly to: Vertex;
}

export function edgeRow({ type, source, target }: GraphEdge): Row {
  return { id: `${source.id} ${type} ${target.id}`, class: type, source: source.id, target: target.id };
}
