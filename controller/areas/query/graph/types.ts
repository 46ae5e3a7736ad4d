import type { Row } from "../../../../common/value.ts";
import type { NodePattern } from "./patterns.ts";

/** One value for each object. Ids alone may be shared by objects of several classes. */
export interface VertexRef {
  /** Unique for each object. */
  readonly number: number;
  readonly id: string;
  /** Path. */
  readonly class: string;
}

/**
 * An object of the MATCH. The answer's part of it and the patterns it fits are computed when it is read, so that the
 * rest need not be kept.
 */
export interface Vertex {
  readonly ref: VertexRef;
  /** Records have no edges of their own. */
  readonly isRecord: boolean;
  /** No path continues from here, unless it begins here. */
  readonly isEnd: boolean;
  readonly fits: ReadonlySet<NodePattern>;
  readonly shown: Row;
}

/** One value for each edge, in whichever direction it was found. */
export interface GraphEdge {
  readonly type: string;
  readonly source: VertexRef;
  readonly target: VertexRef;
}

/** An edge as a chain passes it, which can be against its direction. */
export interface Link {
  readonly edge: GraphEdge;
  readonly from: Vertex;
  readonly to: Vertex;
}

export function edgeRow({ type, source, target }: GraphEdge): Row {
  return { id: `${source.id} ${type} ${target.id}`, class: type, source: source.id, target: target.id };
}
