import type { Slices } from "../run/slice.ts";
import type { Candidates } from "./candidates.ts";
import type { ChainPlan } from "./plan.ts";
import type { Link, Vertex } from "./types.ts";

/**
 * The exact parts of ways that match a whole chain. A way goes from edge to edge, and may pass an object or an edge
 * again. Each hop of it passes at least one edge and at most `depth`. A way does not continue from an object that ends
 * paths, except at its start.
 */
export interface Solution {
  readonly plan: ChainPlan;
  /** Objects that match each node of the chain on some way. */
  readonly objects: readonly ReadonlySet<Vertex>[];
  readonly hops: readonly SolvedHop[];
}

export interface SolvedHop {
  readonly depth: number;
  /** Links that are on some way, by the object they start from. */
  readonly from: LinksOf;
  /** Least number of edges from an object to the end of the hop. */
  readonly rest: Distances;
}

type LinksOf = ReadonlyMap<Vertex, readonly Link[]>;
export type Distances = ReadonlyMap<Vertex, number>;

/**
 * Finds the distance of each object from the start of a hop in a forward pass, and the distance to its end in a
 * backward pass. An edge is on a way if both distances together are short enough. Takes time linear in the links of all
 * hops.
 */
export async function solve(plan: ChainPlan, candidates: Candidates, slices: Slices): Promise<Solution> {
  const { objects, steps } = await passOn(plan, candidates, slices);
  const hops: SolvedHop[] = [];
  for (const [at, { depth }] of [...plan.hops.entries()].reverse()) {
    const links = candidates.links[at] ?? [];
    const rest = await distances(
      objects[at + 1] ?? [],
      { links: await grouped(links, "to", slices), far: "from", most: depth - 1 },
      slices,
    );
    const from = await grouped(links, "from", slices, (link) => lengthOver(link, steps[at], rest) <= depth);
    objects[at] = new Set(
      [...(objects[at] ?? [])].filter((vertex) => steps[at]?.get(vertex) === 0 && from.has(vertex)),
    );
    hops.unshift({ depth, from, rest });
  }
  return { plan, objects, hops };
}

/** Objects of each node that some way from the start reaches, and for each hop the distances of objects in edges. */
async function passOn(
  plan: ChainPlan,
  candidates: Candidates,
  slices: Slices,
): Promise<{ objects: ReadonlySet<Vertex>[]; steps: Distances[] }> {
  const objects: ReadonlySet<Vertex>[] = [candidates.objects[0] ?? new Set()];
  const steps: Distances[] = [];
  for (const [at, { depth }] of plan.hops.entries()) {
    const links = candidates.links[at] ?? [];
    const starts = [...(objects[at] ?? [])].filter((vertex) => at === 0 || !vertex.isEnd);
    const away = await distances(
      starts,
      { links: await grouped(links, "from", slices), far: "to", most: depth - 1 },
      slices,
    );
    const last = await grouped(
      links,
      "to",
      slices,
      (link) => away.has(link.from) && candidates.objects[at + 1]?.has(link.to) === true,
    );
    steps.push(away);
    objects.push(new Set(last.keys()));
  }
  return { objects, steps };
}

interface Field {
  /** Links by the end that is nearer to the starts. */
  readonly links: LinksOf;
  readonly far: "from" | "to";
  readonly most: number;
}

/**
 * Least number of edges from the starts to each object, up to `most`. Does not pass objects that end paths, except the
 * starts.
 */
export async function distances(
  starts: Iterable<Vertex>,
  { links, far, most }: Field,
  slices: Slices,
): Promise<Distances> {
  const found = new Map<Vertex, number>();
  let level = [...starts];
  for (const vertex of level) found.set(vertex, 0);
  for (let distance = 1; distance <= most && level.length > 0; distance += 1) {
    const next: Vertex[] = [];
    for (const vertex of level) {
      if (slices.isOver()) await slices.pause();
      for (const link of links.get(vertex) ?? []) {
        const other = link[far];
        if (found.has(other) || other.isEnd) continue;
        found.set(other, distance);
        next.push(other);
      }
    }
    level = next;
  }
  return found;
}

function lengthOver({ from, to }: Link, steps: Distances | undefined, rest: Distances): number {
  return (steps?.get(from) ?? NaN) + 1 + (rest.get(to) ?? NaN);
}

async function grouped(
  links: readonly Link[],
  by: "from" | "to",
  slices: Slices,
  isKept: (link: Link) => boolean = () => true,
): Promise<LinksOf> {
  const groups = new Map<Vertex, Link[]>();
  for (const link of links) {
    if (slices.isOver()) await slices.pause();
    if (!isKept(link)) continue;
    const group = groups.get(link[by]);
    if (group) group.push(link);
    else groups.set(link[by], [link]);
  }
  return groups;
}
