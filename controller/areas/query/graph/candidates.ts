import { GRAPH_DEPTH_MAX } from "../../../../common/limits.ts";
import { type ChainPlan, type Hop, tooDeep } from "./plan.ts";
import type { NodePattern } from "./patterns.ts";
import type { GraphReader } from "./reader.ts";
import type { Link, Vertex } from "./types.ts";

/** The objects and links that may be part of a way that matches a chain; some may not be. */
export interface Candidates {
  /** Objects that may match each node of the chain. */
  readonly objects: readonly ReadonlySet<Vertex>[];
  /** Links of each hop. */
  readonly links: readonly (readonly Link[])[];
}

/** Reads from the anchor on to the end of the chain and back to its start, level by level. */
export async function candidatesOf({ nodes, hops, anchor }: ChainPlan, reader: GraphReader): Promise<Candidates> {
  const objects: ReadonlySet<Vertex>[] = new Array(nodes.length).fill(new Set<Vertex>());
  const links: (readonly Link[])[] = new Array(hops.length).fill([]);
  objects[anchor] = new Set(await reader.fitting(at(nodes, anchor)));
  for (let hop = anchor; hop < hops.length; hop += 1) {
    const starts = [...at(objects, hop)].filter((vertex) => hop === 0 || !vertex.isEnd);
    const found = await spread(starts, { hop: at(hops, hop), way: "on", reader });
    objects[hop + 1] = standing(found.reached, at(nodes, hop + 1));
    links[hop] = found.links;
  }
  for (let hop = anchor - 1; hop >= 0; hop -= 1) {
    const found = await spread([...at(objects, hop + 1)], { hop: at(hops, hop), way: "back", reader });
    objects[hop] = standing(found.reached, at(nodes, hop));
    links[hop] = found.links;
  }
  return { objects, links };
}

interface Spread {
  readonly hop: Hop;
  readonly way: "on" | "back";
  readonly reader: GraphReader;
}

/**
 * Continues from every object only once, so cycles end. Does not continue from an object that ends paths, except from a
 * start. That holds in both directions.
 */
async function spread(
  starts: readonly Vertex[],
  { hop, way, reader }: Spread,
): Promise<{ links: readonly Link[]; reached: ReadonlySet<Vertex> }> {
  const links: Link[] = [];
  const reached = new Set<Vertex>();
  const left = new Set<Vertex>();
  let level = starts;
  for (let depth = 0; level.length > 0 && depth < hop.depth; depth += 1) {
    if (depth === GRAPH_DEPTH_MAX) throw tooDeep();
    for (const vertex of level) left.add(vertex);
    const next = new Set<Vertex>();
    for (const link of await reader.links(level, hop, way)) {
      const vertex = way === "on" ? link.to : link.from;
      links.push(link);
      reached.add(vertex);
      if (!left.has(vertex) && !vertex.isEnd) next.add(vertex);
    }
    level = [...next];
  }
  return { links, reached };
}

/**
 * The objects that fit the pattern. If it has a limit, they are the first by id, so that the same graph gives the same
 * answer.
 */
function standing(reached: ReadonlySet<Vertex>, pattern: NodePattern): ReadonlySet<Vertex> {
  const fitting = [...reached].filter((vertex) => vertex.fits.has(pattern));
  if (pattern.limit === undefined || fitting.length <= pattern.limit) return new Set(fitting);
  return new Set(fitting.sort(byId).slice(0, pattern.limit));
}

function byId({ ref: left }: Vertex, { ref: right }: Vertex): number {
  if (left.id !== right.id) return left.id < right.id ? -1 : 1;
  return left.class < right.class ? -1 : 1;
}

function at<T>(items: readonly T[], index: number): T {
  return items[index] as T;
}
