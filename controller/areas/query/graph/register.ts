import { GRAPH_EDGES_MAX } from "../../../../common/limits.ts";
import type { ObjectEdge } from "../../objects/index.ts";
import { tooLarge } from "./plan.ts";
import type { GraphEdge, VertexRef } from "./types.ts";

/** Objects and edges of one MATCH by name. There is one value for each, so that they are compared by identity. */
export class Register {
  readonly #refs = new Map<string, Map<string, VertexRef>>();
  readonly #edges = new Map<VertexRef, Map<VertexRef, GraphEdge[]>>();
  #refCount = 0;
  #edgeCount = 0;

  ref(path: string, id: string): VertexRef {
    const ofClass = inner(this.#refs, path);
    const known = ofClass.get(id);
    if (known) return known;
    this.#refCount += 1;
    const ref = { number: this.#refCount, id, class: path };
    ofClass.set(id, ref);
    return ref;
  }

  /** `AppError("too_large")` beyond the limit of edges of one MATCH. */
  edge(found: ObjectEdge): GraphEdge {
    const source = this.ref(found.sourceClass, found.source);
    const target = this.ref(found.targetClass, found.target);
    const between = inner(this.#edges, source);
    const same = between.get(target) ?? [];
    const known = same.find((edge) => edge.type === found.type);
    if (known) return known;
    this.#edgeCount += 1;
    if (this.#edgeCount > GRAPH_EDGES_MAX)
      throw tooLarge(`MATCH meets more than ${GRAPH_EDGES_MAX} edges`, "GRAPH_EDGES_MAX");
    const edge = { type: found.type, source, target };
    between.set(target, [...same, edge]);
    return edge;
  }
}

function inner<A, B, C>(maps: Map<A, Map<B, C>>, key: A): Map<B, C> {
  const known = maps.get(key);
  if (known) return known;
  const made = new Map<B, C>();
  maps.set(key, made);
  return made;
}
