import { GRAPH_DEPTH_MAX } from "../../../../common/limits.ts";
import { tooDeep } from "./plan.ts";
import type { Solution } from "./solution.ts";
import type { Link, Vertex } from "./types.ts";

/** A partial way, as a list that begins at its end. */
export interface Way {
  readonly before: Way | undefined;
  /** The link from `before`; absent at the start. */
  readonly link: Link | undefined;
  readonly vertex: Vertex;
  /** Number of completed hops. */
  readonly hop: number;
  /** Number of passed edges in the current hop; 0 if the object matches a node of the chain. */
  readonly depth: number;
  readonly length: number;
}

export function starts({ objects: [first = new Set<Vertex>()] }: Solution): Way[] {
  return [...first].map((vertex) => ({ before: undefined, link: undefined, vertex, hop: 0, depth: 0, length: 0 }));
}

export function isWhole({ hop }: Way, { hops }: Solution): boolean {
  return hop === hops.length;
}

/**
 * The ways that are one edge longer and can still reach their end, without links for which `isLeftOut` is true. An
 * object may give two ways: one where it matches the next node, and one where it is passed.
 */
export function onward(
  way: Way,
  { hops, objects }: Solution,
  isLeftOut: (link: Link) => boolean = () => false,
): readonly Way[] {
  const ways: Way[] = [];
  const hop = hops[way.hop];
  const depth = way.depth + 1;
  const length = way.length + 1;
  for (const link of hop?.from.get(way.vertex) ?? []) {
    const rest = hop?.rest.get(link.to);
    if (hop === undefined || rest === undefined || depth + rest > hop.depth || isLeftOut(link)) continue;
    if (depth > GRAPH_DEPTH_MAX) throw tooDeep();
    if (objects[way.hop + 1]?.has(link.to))
      ways.push({ before: way, link, vertex: link.to, hop: way.hop + 1, depth: 0, length });
    if (depth < hop.depth && !link.to.isEnd)
      ways.push({ before: way, link, vertex: link.to, hop: way.hop, depth, length });
  }
  return ways;
}

/**
 * All ways that match the chain and pass no edge twice. Also yields undefined at every step, so that it can be
 * interrupted.
 */
export function* trails(solution: Solution): Generator<Way | undefined> {
  const open = starts(solution).reverse();
  for (let way = open.pop(); way !== undefined; way = open.pop()) {
    const here = way;
    yield isWhole(here, solution) ? here : undefined;
    for (const next of onward(here, solution, (link) => passes(here, link))) open.push(next);
  }
}

function passes(way: Way, { edge }: Link): boolean {
  for (let at: Way | undefined = way; at !== undefined; at = at.before) if (at.link?.edge === edge) return true;
  return false;
}
