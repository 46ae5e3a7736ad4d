import { expect, test } from "vitest";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import {
  edgesOf,
  edgeText,
  GraphReference,
  idsOf,
  type PlainChain,
  type PlainEdge,
  type PlainHop,
  type PlainNode,
  tagsOf,
} from "../../../../test/helpers/mql/graph-reference.ts";
import { MemoryObjects } from "../../../../test/helpers/objects/memory/objects.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { TIMES } from "../../../../test/helpers/time/times.ts";
import type { Random } from "../../../../common/time.ts";
import type { Row } from "../../../../common/value.ts";
import type { Principal } from "../../permissions/index.ts";
import { QueryService } from "../index.ts";

/** Random chains over random small graphs, answered by the query area and by walking everywhere. */
const GRAPHS = 30 * TIMES;
const QUERIES_PER_GRAPH = 6;
const admin = testPrincipal();
/** Sees boxes up to a size, and no safes. */
const restricted: Principal = {
  ...admin,
  data: [
    { class: "/", access: "read" },
    { class: "/matrix/box", access: "read", where: "size < 4" },
    { class: "/matrix/safe", access: "none" },
  ],
};

interface PlainObject {
  readonly id: string;
  readonly class: string;
  readonly size: number;
}

interface Drawn {
  readonly node: PlainNode;
  readonly text: string;
}

interface PathRow extends Row {
  readonly nodes: readonly string[];
  readonly edges: readonly Row[];
}

interface Answer {
  readonly nodes: readonly { readonly id: string }[];
  readonly edges: readonly { readonly id: string }[];
  readonly paths: readonly PathRow[];
}

class Round {
  readonly #random: Random;
  readonly objects: readonly PlainObject[];
  readonly edges: readonly PlainEdge[];
  /** Ids of the objects that the caller of the query sees. */
  seen: ReadonlySet<string> = new Set();

  constructor(random: Random) {
    this.#random = random;
    const classes = ["box", "box", "box", "disk", "safe"];
    this.objects = Array.from({ length: 2 + this.#below(5) }, (_, at) => {
      const name = this.#pick(classes);
      return { id: `${name}:${at}`, class: `/matrix/${name === "disk" ? "box/disk" : name}`, size: at };
    });
    const ends = this.objects.map((object) => object.id);
    const drawn = Array.from(
      { length: this.#below(8) },
      (): PlainEdge => ({ type: this.#pick(["t", "u"]), source: this.#pick(ends), target: this.#pick(ends) }),
    );
    this.edges = [...new Map(drawn.map((edge) => [edgeText(edge), edge])).values()];
  }

  chain(): { readonly text: string; readonly chain: Omit<PlainChain, "until"> } {
    const drawn = Array.from({ length: 1 + this.#below(4) }, (_, at) => this.#node(`m${at}`));
    const hops = drawn.slice(1).map(() => this.#hop());
    const text = drawn.map((one, at) => (at === 0 ? "" : arrow(hops[at - 1])) + one.text).join("");
    return { text, chain: { nodes: drawn.map((one) => one.node), hops } };
  }

  until(): string | undefined {
    return this.#below(4) > 0 ? undefined : this.#pick(["box:*", "disk:*", `*:[0-${this.#below(5)}]`]);
  }

  #node(tag: string): Drawn {
    const of = (id: string) => this.objects.find((object) => object.id === id);
    const most = this.#below(6);
    const id = this.#pick(this.objects).id;
    const makers: readonly (() => readonly [string, (id: string) => boolean])[] = [
      () => ["", () => true],
      () => ["", () => true],
      () => [`:"${id}"`, (one) => one === id],
      () => [`:"box:*"`, (one) => one.startsWith("box:")],
      () => [`:"*:[0-${most}]"`, (one) => (of(one)?.size ?? 9) <= most],
      () => [":disk", (one) => one.startsWith("disk:")],
      () => [":/matrix/box", (one) => one.startsWith("box:")],
      () => [`:/matrix/box/ where t.size <= ${most}`, (one) => !one.startsWith("safe:") && this.#leadsTo(one, most)],
      () => [`:/matrix/box/ where size <= ${most}`, (one) => !one.startsWith("safe:") && (of(one)?.size ?? 9) <= most],
    ];
    const [text, fits] = this.#pick(makers)();
    return { text: `(${tag}${text})`, node: { tag, isOpen: text === "", fits } };
  }

  /** To one object of at most that size: several make a list, which is neither less nor more. */
  #leadsTo(id: string, most: number): boolean {
    const ends = this.edges.filter(
      ({ type, source, target }) => type === "t" && source === id && this.seen.has(target),
    );
    const [only] = this.objects.filter((object) => object.id === ends[0]?.target);
    return ends.length === 1 && only !== undefined && only.size <= most;
  }

  #hop(): PlainHop {
    return {
      direction: this.#pick(["out", "in", "both"]),
      type: this.#pick([undefined, "t", "u"]),
      depth: this.#pick([1, 1, 2, 3, "any"]),
    };
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[this.#below(choices.length)] as T;
  }

  #below(end: number): number {
    return Math.floor(this.#random.next() * end);
  }
}

function arrow(hop: PlainHop | undefined): string {
  const { direction, type, depth } = hop ?? { direction: "out", type: undefined, depth: 1 };
  const inside = `[${type === undefined ? "" : `:${type}`}${depth === "any" ? "*" : depth === 1 ? "" : `*${depth}`}]`;
  return `${direction === "in" ? "<-" : "-"}${inside}${direction === "out" ? "->" : "-"}`;
}

async function stored(round: Round, narrows: boolean): Promise<QueryService> {
  const objects = new MemoryObjects({ nowMs: () => 0, narrows });
  const query = new QueryService({ objects, runtime: { clock: realClock } });
  await query.rows(
    admin,
    "create edge type t; create edge type u; create class /matrix/safe (size int); create class /matrix/box (size int); create class /matrix/box/disk (room int)",
  );
  for (const { id, class: path, size } of round.objects) await objects.unrestricted.insert(admin, path, [{ id, size }]);
  for (const { type, source, target } of round.edges)
    await objects.unrestricted.update(admin, { id: source }, [{ column: type, operation: "add", value: [target] }]);
  return query;
}

async function graphOf(query: QueryService, who: Principal, text: string): Promise<Answer> {
  const [row] = await query.rows(who, text);
  return row?.graph as unknown as Answer;
}

function referenceFor(round: Round, who: Principal): GraphReference {
  const seen = round.objects
    .filter((object) => who === admin || (object.size < 4 && object.class !== "/matrix/safe"))
    .map((object) => object.id);
  round.seen = new Set(seen);
  return new GraphReference(
    seen,
    round.edges.filter((edge) => seen.includes(edge.source) && seen.includes(edge.target)),
  );
}

function untilTest(pattern: string | undefined): (id: string) => boolean {
  const expression = pattern === undefined ? undefined : new RegExp(`^${pattern.replace("*", ".*")}$`);
  return (id) => expression?.test(id) ?? false;
}

function sorted(rows: Iterable<unknown>): readonly string[] {
  return [...rows].map((row) => (typeof row === "string" ? row : JSON.stringify(row))).sort();
}

function pathText(nodes: readonly unknown[], edges: readonly string[], tags: Row): string {
  return JSON.stringify([nodes, edges, Object.entries(tags).sort()]);
}

test.each([1, 2, 3])("objects and edges are those of all ways that match, whoever asks (seed %i)", async (seed) => {
  const random = seededRandom(seed);
  let met = 0;
  for (let graph = 0; graph < GRAPHS; graph += 1) {
    const round = new Round(random);
    const query = await stored(round, graph % 2 === 0);
    for (let count = 0; count < QUERIES_PER_GRAPH; count += 1) {
      const drawn = [round.chain(), ...(random.next() < 0.3 ? [round.chain()] : [])];
      const until = round.until();
      const text = `match ${drawn.map((one) => one.text).join(" union ")}${until === undefined ? "" : ` until '${until}'`}`;
      // The id of a safe is an error for a user who may not see safes.
      const who = random.next() < 0.3 && !text.includes('"safe:') ? restricted : admin;
      const reference = referenceFor(round, who);
      const expected = drawn.map(({ chain }) => reference.found({ ...chain, until: untilTest(until) }));
      const answer = await graphOf(query, who, text);
      const told = `seed ${seed} graph ${graph}: ${text} over ${sorted(round.edges.map(edgeText)).join(", ")}`;
      expect(sorted(answer.nodes.map((node) => node.id)), told).toEqual(
        sorted(new Set(expected.flatMap((one) => [...one.nodes]))),
      );
      expect(sorted(answer.edges.map((edge) => edge.id)), told).toEqual(
        sorted(new Set(expected.flatMap((one) => [...one.edges]))),
      );
      met += answer.edges.length;
    }
  }
  // Graphs without edges would prove nothing.
  expect(met).toBeGreaterThan(GRAPHS);
});

test.each([11, 12])("paths are those there are, by every mode (seed %i)", async (seed) => {
  const random = seededRandom(seed);
  let met = 0;
  for (let graph = 0; graph < GRAPHS; graph += 1) {
    const round = new Round(random);
    const query = await stored(round, graph % 2 === 0);
    const reference = referenceFor(round, admin);
    for (const mode of ["", "short", "long", "all", "detail", "back"]) {
      const { text, chain: drawn } = round.chain();
      const until = round.until();
      const chain = { ...drawn, until: untilTest(until) };
      const tags = drawn.nodes.map((node) => node.tag).filter(() => random.next() < 0.6);
      const told = `match ${text} ${mode} path ${tags.join(", ")}${until === undefined ? "" : ` until '${until}'`}`;
      const { paths } = await graphOf(query, admin, told);
      const named = tags.length > 0 ? tags : drawn.nodes.map((node) => node.tag);
      expect(
        sorted(paths.map((path) => shownPath(path, mode))),
        `seed ${seed} graph ${graph}: ${told} over ${sorted(round.edges.map(edgeText)).join(", ")}`,
      ).toEqual(
        sorted(
          mode === ""
            ? [...reference.combinations(chain, named)].map((row) => pathText([], [], JSON.parse(row) as Row))
            : walksBy(mode, reference, chain).map((walk) => expectedPath(walk, mode, { chain, tags: named })),
        ),
      );
      met += paths.length;
    }
  }
  expect(met).toBeGreaterThan(GRAPHS);
});

type Walk = ReturnType<GraphReference["trails"]>[number];

function walksBy(mode: string, reference: GraphReference, chain: PlainChain): readonly Walk[] {
  if (mode === "short") return reference.shortest(chain);
  const trails = reference.trails(chain);
  if (mode !== "long") return trails;
  const ends = (walk: Walk) => `${idsOf(walk)[0]} ${idsOf(walk).at(-1)}`;
  return trails.filter((walk) => !trails.some((other) => ends(other) === ends(walk) && other.length > walk.length));
}

function shownPath({ nodes, edges, ...tags }: PathRow, mode: string): string {
  return mode === "detail" || mode === "back"
    ? pathText(
        nodes,
        edges.map((edge) => String(edge.id)),
        tags,
      )
    : pathText([], [], tags);
}

function expectedPath(
  walk: Walk,
  mode: string,
  { chain, tags }: { readonly chain: PlainChain; readonly tags: readonly string[] },
): string {
  const row = tagsOf(walk, chain, tags);
  if (mode !== "detail" && mode !== "back") return pathText([], [], row);
  const ids = [...idsOf(walk)];
  const edges = edgesOf(walk).map(edgeText);
  return mode === "back" ? pathText(ids.reverse(), edges.reverse(), row) : pathText(ids, edges, row);
}
