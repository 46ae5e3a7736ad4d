import { beforeEach, describe, expect, test } from "vitest";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { MemoryObjects } from "../../../../test/helpers/objects/memory/objects.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import {
  GRAPH_CHAINS_MAX,
  GRAPH_DEPTH_MAX,
  GRAPH_EDGES_MAX,
  GRAPH_NODES_MAX,
  GRAPH_STEPS_MAX,
} from "../../../../common/limits.ts";
import type { ObjectEdge, ObjectRef, ObjectRow } from "../../objects/index.ts";
import { QueryService } from "../index.ts";

const admin = testPrincipal();
let objects: MemoryObjects;
let query: QueryService;

beforeEach(async () => {
  objects = new MemoryObjects({ nowMs: () => 0 });
  query = new QueryService({ objects, runtime: { clock: realClock } });
  await query.rows(admin, "create edge type t; create edge type last; create class /matrix/box (size int)");
});

/** Objects 0 to `count` - 1, each with edges to what `to` says. */
async function boxes(count: number, to: (at: number) => readonly number[], type = "t"): Promise<void> {
  const rows = Array.from({ length: count }, (_, at) => ({
    id: String(at),
    size: at,
    [type]: to(at).map((end) => `box:${end}`),
  }));
  await objects.unrestricted.insert(admin, "/matrix/box", rows);
}

async function graphOf(text: string) {
  const [row] = await query.rows(admin, text);
  return row?.graph as unknown as { nodes: { id: string }[]; edges: unknown[]; paths: Record<string, string>[] };
}

function tooLarge(limit: string) {
  return { code: "too_large", details: { limit } };
}

describe("limits", () => {
  test("of what is written", async () => {
    await expect(graphOf(`match ()${"-[]->()".repeat(GRAPH_STEPS_MAX + 1)}`)).rejects.toMatchObject(
      tooLarge("GRAPH_STEPS_MAX"),
    );
    await expect(graphOf(`match ()${" union ()".repeat(GRAPH_CHAINS_MAX)}`)).rejects.toMatchObject(
      tooLarge("GRAPH_CHAINS_MAX"),
    );
    await expect(graphOf(`match ()-[*${GRAPH_DEPTH_MAX + 1}]->()`)).rejects.toMatchObject(tooLarge("GRAPH_DEPTH_MAX"));
    expect(
      (
        await graphOf(
          `match ('box:0')${"-[]->()".repeat(GRAPH_STEPS_MAX)}${" union ('box:0')".repeat(GRAPH_CHAINS_MAX - 1)}`,
        )
      ).nodes,
    ).toEqual([]);
  });

  test("of depth: nothing is cut off silently", async () => {
    await boxes(GRAPH_DEPTH_MAX + 1, (at) => (at < GRAPH_DEPTH_MAX ? [at + 1] : []));
    expect((await graphOf("match ('box:1')-[*]->()")).nodes).toHaveLength(GRAPH_DEPTH_MAX);
    await expect(graphOf("match ('box:0')-[*]->()")).rejects.toMatchObject(tooLarge("GRAPH_DEPTH_MAX"));
    expect((await graphOf(`match ('box:0')-[*${GRAPH_DEPTH_MAX}]->()`)).nodes).toHaveLength(GRAPH_DEPTH_MAX + 1);
  });

  test("of paths, while the shortest are few; and of the search for them", async () => {
    await boxes(9, (at) => Array.from({ length: 8 }, (_, to) => to).filter((to) => to !== at && at < 8));
    await objects.unrestricted.update(admin, { id: "box:0" }, [{ column: "last", operation: "add", value: ["box:8"] }]);
    await expect(graphOf("match all path ('box:1')-[*]->()")).rejects.toMatchObject(tooLarge("GRAPH_PATHS_MAX"));
    expect((await graphOf("match short path (a:'box:1')-[*]->(b)")).paths).toHaveLength(15);
    expect((await graphOf("match path a, b (a:'box:1')-[*]->(b)")).paths).toHaveLength(9);
    // The only edge back from 8 has always been passed before.
    const dead = "('box:1')-[*]->('box:8')<-[:last]-()";
    await expect(graphOf(`match all path ${dead}`)).rejects.toMatchObject(tooLarge("GRAPH_PATH_SEARCH_MAX_STEPS"));
    expect((await graphOf(`match ${dead}`)).nodes).toHaveLength(9);
  });
});

/** One object with more edges than fit into memory many times over; how many were read shows in `given`. */
class Star extends MemoryObjects {
  given = 0;
  readonly ends: number;

  constructor(ends: number) {
    super({ nowMs: () => 0 });
    this.ends = ends;
  }

  override async *edges(): AsyncIterable<readonly ObjectEdge[]> {
    for (;;) {
      yield await Promise.resolve(
        Array.from({ length: 1_000 }, (): ObjectEdge => {
          const end = this.given % this.ends;
          const type = this.given < this.ends ? "t" : `t${Math.floor(this.given / this.ends)}`;
          this.given += 1;
          return {
            type,
            source: "box:0",
            target: `box:${end}`,
            sourceClass: "/matrix/box",
            targetClass: "/matrix/box",
            timeMs: 0,
          };
        }),
      );
      if (this.given === this.ends) return;
    }
  }

  override async get(_: unknown, refs: readonly ObjectRef[]): Promise<readonly (ObjectRow | undefined)[]> {
    const view = (await this.catalog(admin)).get("/matrix/box");
    return refs.map(({ id }) => view && { id, class: view, values: {}, vtimeMs: 0, ctimeMs: 0 });
  }
}

test.each([
  ["objects", GRAPH_NODES_MAX + 1_000, "GRAPH_NODES_MAX"],
  ["edges", 1_001, "GRAPH_EDGES_MAX"],
])("no more %s are held than the limit lets pass", async (_, ends, limit) => {
  const star = new Star(ends);
  const over = new QueryService({ objects: star, runtime: { clock: realClock } });
  await over.rows(admin, "create class /matrix/box (size int); insert into /matrix/box id = '0'");
  await expect(over.rows(admin, "match ('box:0')-[]->()")).rejects.toMatchObject(tooLarge(limit));
  expect(star.given).toBeLessThanOrEqual(GRAPH_EDGES_MAX + 1_000);
});

test("the more id patterns an object is compared with, the more often it is asked whether others have to wait", async () => {
  await boxes(500, () => []);
  const looks = async (patterns: number): Promise<number> => {
    let asked = 0;
    const clock = { ...realClock, monotonicMs: () => (asked += 1) && realClock.monotonicMs() };
    const watched = new QueryService({ objects, runtime: { clock } });
    await watched.rows(admin, `match (${Array.from({ length: patterns }, (_, n) => `'box:*-${n}[1-5]'`).join()})`);
    return asked;
  };
  expect(await looks(1)).toBeLessThan(500);
  expect(await looks(1_000)).toBeGreaterThan(500);
});

test("each object's edges are read once, all of a level together", async () => {
  await boxes(15, (at) => [2 * at + 1, 2 * at + 2, 0].filter((to) => to < 15));
  const asked: number[] = [];
  const edges = objects.unrestricted.edges.bind(objects);
  objects.unrestricted.edges = (...call) => {
    asked.push(call[1].length);
    return edges(...call);
  };
  await graphOf("match ('box:0')-[:t*]->()-[:t]->() union ('box:1')-[:t*2]->()");
  expect(asked).toEqual([1, 2, 4, 8]);
});

test("LIMIT of a start takes any, of another node the first by id; -1 is none", async () => {
  await boxes(6, () => [3, 4, 5]);
  expect((await graphOf("match (:box limit 2)")).nodes).toHaveLength(2);
  expect((await graphOf("match (:box limit 0)")).nodes).toEqual([]);
  expect((await graphOf("match (:box limit -1)")).nodes).toHaveLength(6);
  const { nodes } = await graphOf("match ('box:0')-[]->(:box where size > 3 limit 1)");
  expect(nodes.map((node) => node.id).sort()).toEqual(["box:0", "box:4"]);
});

test("values take the places of placeholders, one graph for each list of them", async () => {
  await boxes(3, () => []);
  const result = await query.run(admin, "match (:box where size >= ? limit ?)", {
    values: [
      [1, -1],
      [0, 1],
    ],
  });
  const counts: number[] = [];
  for await (const page of result.rows)
    counts.push(...page.map((row) => (row.graph as unknown as { nodes: unknown[] }).nodes.length));
  expect(counts).toEqual([2, 1]);
});

test("meta says whether it is a graph or paths", async () => {
  await boxes(1, () => []);
  const types = ["match (:box)", "match path (:box)", "explain match (:box)"].map(
    async (text) => (await query.run(admin, text)).meta.type,
  );
  expect(await Promise.all(types)).toEqual(["graph", "path", "explain"]);
});

test("EXPLAIN tells where reading begins and what is followed", async () => {
  const steps = await query.rows(
    admin,
    "explain match ()-[:t]->(m:box where size = 1)-[*]-('box:1','box:*') until 'box:x*' short path m",
  );
  expect(steps.map((row) => row.work)).toEqual([
    "scan of class /matrix/box",
    "begin at box where size = 1",
    "edges of both directions of every type, any number, to box:1, box:*",
    "incoming edges of t to any object",
    "go on from nothing called box:x*",
    "short paths of m",
  ]);
});

test("a graph that nobody waits for any more is given up", async () => {
  await boxes(3, (at) => [(at + 1) % 3]);
  const controller = new AbortController();
  const { rows } = await query.run(admin, "match ('box:0')-[*]->()", { signal: controller.signal });
  controller.abort();
  await expect(rows[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "cancelled" });
});

test("what lies beyond an end of paths is not read, from whichever side it is come to", async () => {
  await boxes(GRAPH_DEPTH_MAX + 10, (at) => (at < GRAPH_DEPTH_MAX + 9 ? [at + 1] : []));
  const back = await graphOf(`match ()-[*]->('box:${GRAPH_DEPTH_MAX + 9}') until 'box:${GRAPH_DEPTH_MAX + 5}'`);
  expect(back.nodes).toHaveLength(5);
  expect((await graphOf("match ('box:0')-[*]->() until 'box:4'")).nodes).toHaveLength(5);
});

test("where a start is an end for others, only it is gone on from", async () => {
  await boxes(3, (at) => [at + 1].filter((to) => to < 3));
  const { paths } = await graphOf("match path a, b (a:'box:[01]')-[*]->(b) until 'box:1'");
  expect(paths).toEqual(
    expect.arrayContaining([
      { a: "box:0", b: "box:1" },
      { a: "box:1", b: "box:2" },
    ]),
  );
  expect(paths).toHaveLength(2);
});

test.each(["", "short ", "all "])("a tag may be called __proto__ (%spath)", async (mode) => {
  await boxes(2, (at) => [at + 1].filter((to) => to < 2));
  const [path = {}] = (await graphOf(`match ${mode}path __proto__, b (__proto__:'box:0')-[*]->(b)`)).paths;
  expect(new Map(Object.entries(path)).get("__proto__")).toBe("box:0");
});
