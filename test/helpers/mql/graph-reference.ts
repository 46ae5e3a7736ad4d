/**
 * A reference implementation of MATCH over a few objects: enumerates every state of a walk and every step from it. It
 * is simple enough to verify by reading, and therefore slow.
 */

export interface PlainEdge {
  readonly type: string;
  readonly source: string;
  readonly target: string;
}

export interface PlainNode {
  readonly tag: string;
  readonly isOpen: boolean;
  readonly fits: (id: string) => boolean;
}

export interface PlainHop {
  readonly direction: "out" | "in" | "both";
  readonly type: string | undefined;
  readonly depth: number | "any";
}

export interface PlainChain {
  readonly nodes: readonly PlainNode[];
  readonly hops: readonly PlainHop[];
  readonly until: (id: string) => boolean;
}

/** State of a walk: completed hops, edges of the current hop, current object. */
interface Situation {
  readonly hop: number;
  readonly depth: number;
  readonly at: string;
}

interface Step {
  readonly edge: PlainEdge;
  readonly to: Situation;
}

type Walk = readonly [first: Situation, ...steps: readonly Step[]];

/** Contains only the objects and edges that the caller may see. */
export class GraphReference {
  readonly #ids: readonly string[];
  readonly #edges: readonly PlainEdge[];

  constructor(ids: readonly string[], edges: readonly PlainEdge[]) {
    this.#ids = ids;
    this.#edges = edges;
  }

  /** Ids of the nodes, and edges as text. */
  found(chain: PlainChain): { readonly nodes: ReadonlySet<string>; readonly edges: ReadonlySet<string> } {
    const steps = this.#reachableSteps(chain);
    const good = new Set(steps.filter((step) => isEnd(step.to, chain)).map((step) => nameOf(step.to)));
    for (let before = -1; before !== good.size; ) {
      before = good.size;
      for (const { from, to } of steps) if (good.has(nameOf(to))) good.add(nameOf(from));
    }
    const used = steps.filter((step) => good.has(nameOf(step.to)));
    const starts =
      chain.nodes[0]?.isOpen === false || chain.hops.length === 0 ? this.#starts(chain).map(({ at }) => at) : [];
    return {
      nodes: new Set([...starts, ...used.flatMap(({ from, to }) => [from.at, to.at])]),
      edges: new Set(used.map(({ edge }) => edgeText(edge))),
    };
  }

  /** All walks that use no edge twice. */
  trails(chain: PlainChain): readonly Walk[] {
    const grow = (walk: Walk): readonly Walk[] => {
      const passed = edgesOf(walk);
      const next = this.#steps(chain, lastOf(walk)).filter((step) => !passed.includes(step.edge));
      return [...(isEnd(lastOf(walk), chain) ? [walk] : []), ...next.flatMap((step) => grow([...walk, step]))];
    };
    return this.#starts(chain).flatMap((start) => grow([start]));
  }

  /** The walks with the fewest edges for each pair of ends. All walks of one length are found before longer ones. */
  shortest(chain: PlainChain): readonly Walk[] {
    return this.#starts(chain).flatMap((start) => {
      const found = new Map<string, readonly Walk[]>();
      let walks: readonly Walk[] = [[start]];
      for (let length = this.#farthest(chain, start); length >= 0; length -= 1) {
        const whole = walks.filter((walk) => isEnd(lastOf(walk), chain));
        for (const end of new Set(whole.map((walk) => lastOf(walk).at))) {
          if (!found.has(end))
            found.set(
              end,
              whole.filter((walk) => lastOf(walk).at === end),
            );
        }
        walks = walks.flatMap((walk) => this.#steps(chain, lastOf(walk)).map((step): Walk => [...walk, step]));
      }
      return [...found.values()].flat();
    });
  }

  /** Number of edges to the end that is hardest to reach. */
  #farthest(chain: PlainChain, start: Situation): number {
    const ends = new Set<string>();
    const seen = new Set([nameOf(start)]);
    let farthest = 0;
    let level: readonly Situation[] = [start];
    for (let length = 0; level.length > 0; length += 1) {
      const isNew = level.filter((one) => isEnd(one, chain) && !ends.has(one.at));
      if (isNew.length > 0) farthest = length;
      for (const { at } of isNew) ends.add(at);
      level = level
        .flatMap((one) => this.#steps(chain, one).map((step) => step.to))
        .filter((one) => !seen.has(nameOf(one)) && seen.add(nameOf(one)));
    }
    return farthest;
  }

  /** Combinations of objects at the tagged nodes of a walk, as text. */
  combinations(chain: PlainChain, tags: readonly string[]): ReadonlySet<string> {
    const start = (one: Situation) => ({ situation: one, row: withTag({}, one, { chain, tags }) });
    const open = this.#starts(chain).map(start);
    const seen = new Set<string>();
    const rows = new Set<string>();
    for (let one = open.pop(); one !== undefined; one = open.pop()) {
      const { situation, row } = one;
      const name = `${nameOf(situation)} ${JSON.stringify(row)}`;
      if (seen.has(name)) continue;
      seen.add(name);
      if (isEnd(situation, chain)) rows.add(JSON.stringify(row));
      for (const { to } of this.#steps(chain, situation))
        open.push({ situation: to, row: withTag(row, to, { chain, tags }) });
    }
    return rows;
  }

  #starts({ nodes: [first] }: PlainChain): readonly Situation[] {
    return this.#ids.filter((id) => first?.fits(id)).map((at) => ({ hop: 0, depth: 0, at }));
  }

  #steps({ nodes, hops, until }: PlainChain, from: Situation): readonly Step[] {
    const hop = hops[from.hop];
    const isFirst = from.hop === 0 && from.depth === 0;
    if (!hop || (until(from.at) && !isFirst)) return [];
    const most = hop.depth === "any" ? 2 * this.#edges.length + 2 : hop.depth;
    return this.#passed(hop, from.at).flatMap(({ edge, at }): Step[] => [
      ...(nodes[from.hop + 1]?.fits(at) ? [{ edge, to: { hop: from.hop + 1, depth: 0, at } }] : []),
      ...(from.depth + 1 < most ? [{ edge, to: { hop: from.hop, depth: from.depth + 1, at } }] : []),
    ]);
  }

  #passed({ direction, type }: PlainHop, from: string): readonly { readonly edge: PlainEdge; readonly at: string }[] {
    return this.#edges.flatMap((edge) => {
      if (type !== undefined && edge.type !== type) return [];
      const on = direction !== "in" && edge.source === from ? [{ edge, at: edge.target }] : [];
      const back = direction !== "out" && edge.target === from ? [{ edge, at: edge.source }] : [];
      return edge.source === edge.target && direction === "both" ? on : [...on, ...back];
    });
  }

  #reachableSteps(chain: PlainChain): readonly (Step & { readonly from: Situation })[] {
    const open = [...this.#starts(chain)];
    const seen = new Set(open.map(nameOf));
    const steps: (Step & { readonly from: Situation })[] = [];
    for (let from = open.pop(); from !== undefined; from = open.pop()) {
      for (const step of this.#steps(chain, from)) {
        steps.push({ ...step, from });
        if (seen.has(nameOf(step.to))) continue;
        seen.add(nameOf(step.to));
        open.push(step.to);
      }
    }
    return steps;
  }
}

export function edgeText({ source, type, target }: PlainEdge): string {
  return `${source} ${type} ${target}`;
}

export function edgesOf([, ...steps]: Walk): readonly PlainEdge[] {
  return steps.map((step) => step.edge);
}

/** Ids in the order of the walk. */
export function idsOf([first, ...steps]: Walk): readonly string[] {
  return [first.at, ...steps.map((step) => step.to.at)];
}

export function tagsOf(walk: Walk, chain: PlainChain, tags: readonly string[]): Record<string, string> {
  const [first, ...steps] = walk;
  return [first, ...steps.map((step) => step.to)].reduce(
    (row, situation) => withTag(row, situation, { chain, tags }),
    {},
  );
}

function withTag(
  row: Record<string, string>,
  { hop, depth, at }: Situation,
  of: { readonly chain: PlainChain; readonly tags: readonly string[] },
): Record<string, string> {
  const tag = depth === 0 ? of.chain.nodes[hop]?.tag : undefined;
  return tag !== undefined && of.tags.includes(tag) ? { ...row, [tag]: at } : row;
}

function isEnd({ hop }: Situation, { hops }: PlainChain): boolean {
  return hop === hops.length;
}

function lastOf([first, ...steps]: Walk): Situation {
  return steps.at(-1)?.to ?? first;
}

function nameOf({ hop, depth, at }: Situation): string {
  return `${hop} ${depth} ${at}`;
}
