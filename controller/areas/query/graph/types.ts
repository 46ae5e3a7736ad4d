import type { Row } from "../../../../common/value.ts";
import type { NodePattern } from "./patterns.ts";

/** The same one for the same object. Ids alone can be those of objects of several classes. */
export interface VertexRef {
  /** Different for different objects. */
  readonly number: number;
  readonly id: string;
  /** Path. */
  readonly class: string;
}

/** An object that was met. What is shown of it and what it fits is settled when it is read, so that the rest of it need not be kept. */
export interface Vertex {
  readonly ref: VertexRef;
  /** Records have no edges of their own. */
  readonly isRecord: boolean;
  /** No path goes on from here, unless it begins here. */
  readonly isEnd: boolean;
  readonly fits: ReadonlySet<NodePattern>;
  readonly shown: Row;
}

/** The same one for the same edge, whichever way it was found. */
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
