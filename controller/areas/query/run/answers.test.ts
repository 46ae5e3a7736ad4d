import { beforeEach, expect, test, vi } from "vitest";
import { QUERY_FOLLOWED_MAX, OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import { parseScript } from "../../../../common/mql/index.ts";
import type { Row } from "../../../../common/value.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { MemoryObjects } from "../../../../test/helpers/objects/memory/objects.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { ObjectEdge, ObjectRow } from "../../objects/index.ts";
import { QueryService } from "../index.ts";
import { workOf } from "./work.ts";

const admin = testPrincipal();
let objects: MemoryObjects;
let query: QueryService;

beforeEach(async () => {
  objects = new MemoryObjects({ nowMs: () => 0, narrows: true });
  query = new QueryService({ objects, runtime: { clock: realClock } });
  await query.rows(
    admin,
    "create edge type holds; create class /matrix/box (name varchar, place varchar, size int, keys(name)); create class /matrix/room (name varchar, floor int, keys(name))",
  );
  await query.rows(
    admin,
    "insert into /matrix/room (name, floor) values ('hall', 0), ('attic', 3), ('cellar', 1); insert into /matrix/box (name, place, size) values ('a', 'hall', 1), ('b', 'hall', 2), ('c', 'attic', 2), ('d', 'hall', 2), ('e', null, 3)",
  );
});

/** The pages of an answer, and whether others had their turn between them. */
async function pagesOf(
  of: QueryService,
  text: string,
): Promise<{ readonly pages: readonly (readonly Row[])[]; readonly turns: number }> {
  let turns = 0;
  let running = true;
  const other = (): void => {
    turns += 1;
    if (running) setImmediate(other);
  };
  const { rows } = await of.run(admin, text);
  const pages: (readonly Row[])[] = [];
  for await (const page of rows) {
    if (pages.length === 0) setImmediate(other);
    pages.push(page);
  }
  running = false;
  return { pages, turns };
}

/** Boxes that are made while they are read. */
function manyBoxes(count: number): MemoryObjects {
  const source = new MemoryObjects({ nowMs: () => 0 });
  const ready = source.createClass(admin, { path: "/matrix/box", columns: [{ name: "size", type: "int" }] });
  source.unrestricted.read = async function* () {
    const view = await ready;
    for (let at = 0; at < count; at += 100) {
      yield Array.from({ length: Math.min(100, count - at) }, (_, index): ObjectRow => {
        return { id: `box:${at + index}`, class: view, values: { size: at + index }, vtimeMs: 0, ctimeMs: 0 };
      });
    }
  };
  return source;
}

test.each<readonly [string, readonly Row[]]>([
  ["select place as p, count(*) as n from /matrix/box group by place having n > 1", [{ p: "hall", n: 3 }]],
  ["select place as p, count(*) as n from /matrix/box group by place having p = 'attic'", [{ p: "attic", n: 1 }]],
  [
    "select size, count(*) from /matrix/box group by size having count(*) = 1 order by size desc",
    [
      { size: 3, count: 1 },
      { size: 1, count: 1 },
    ],
  ],
  ["select distinct place from /matrix/box order by place desc limit 2", [{ place: "hall" }, { place: "attic" }]],
  ["select distinct place, size from /matrix/box where place = 'hall' limit 1 offset 1", [{ place: "hall", size: 2 }]],
])("groups and different rows: %s", async (text, rows) => {
  expect(await query.rows(admin, text)).toEqual(rows);
});

test.each<readonly [string, readonly Row[]]>([
  [
    "select name from /matrix/box where size = 1 union all select name from /matrix/room limit 2 offset 1",
    [{ name: "hall" }, { name: "attic" }],
  ],
  [
    "select name from /matrix/room union select place as name from /matrix/box order by name limit 2 offset 1",
    [{ name: "attic" }, { name: "cellar" }],
  ],
  [
    "select place, count(*) from /matrix/box group by place union select name, count(*) from /matrix/room group by name order by count(*) desc limit 1",
    [{ place: "hall", count: 3 }],
  ],
])("of a UNION, the rows of all parts are ordered and cut together: %s", async (text, rows) => {
  expect(await query.rows(admin, text)).toEqual(rows);
});

test("a UNION is not ordered by what no part of it answers", async () => {
  const text = "select name from /matrix/box union select name from /matrix/room order by floor";
  await expect(query.rows(admin, text)).rejects.toMatchObject({ code: "not_found" });
});

test("what is joined to a joined object is found by that object, not by the first", async () => {
  await query.rows(admin, "create class /matrix/lift (floor int, speed int)");
  await query.rows(admin, "insert into /matrix/lift (floor, speed) values (0, 7), (1, 8), (2, 9)");
  const text =
    "select a.name, c.speed from /matrix/box a join (b:/matrix/room) on b.name = a.place join (c:/matrix/lift) on c.floor = b.floor order by a.name";
  expect(await query.rows(admin, text)).toEqual([
    { name: "a", speed: 7 },
    { name: "b", speed: 7 },
    { name: "d", speed: 7 },
  ]);
});

test("a relation is null where there is none, else the ids in their order", async () => {
  await query.rows(
    admin,
    `update /matrix/room holds = ["box:b", "box:a"] where name = 'hall'; update /matrix/room holds = ["box:c"] where name = 'attic'`,
  );
  expect(await query.rows(admin, "select name, holds from /matrix/room order by name")).toEqual([
    { name: "attic", holds: ["box:c"] },
    { name: "cellar", holds: null },
    { name: "hall", holds: ["box:a", "box:b"] },
  ]);
});

test("a page of rows has so many relations and not one more", async () => {
  let count = QUERY_FOLLOWED_MAX;
  const edge = (at: number): ObjectEdge => ({
    type: "holds",
    timeMs: 0,
    source: "room:hall",
    sourceClass: "/matrix/room",
    target: `box:${at}`,
    targetClass: "/matrix/box",
  });
  objects.unrestricted.edges = async function* () {
    yield await Promise.resolve(Array.from({ length: count }, (_, at) => edge(at)));
  };
  const text = "select name, holds from /matrix/room where name = 'hall'";
  const [row] = await query.rows(admin, text);
  expect(row?.holds).toHaveLength(QUERY_FOLLOWED_MAX);
  count += 1;
  await expect(query.rows(admin, text)).rejects.toMatchObject({
    code: "too_large",
    details: { limit: "QUERY_FOLLOWED_MAX" },
  });
});

test("what relations lead to is read once for a page of rows, however many rows and ends there are", async () => {
  objects = new MemoryObjects({ nowMs: () => 0, pageSize: OBJECT_PAGE_MAX });
  query = new QueryService({ objects, runtime: { clock: realClock } });
  const names = Array.from({ length: 50 }, (_, at) => `p${String(at).padStart(2, "0")}`);
  const values = names.map((name, at) => `('${name}', ${at}, ["box:p03", "box:p04", "box:p05"])`).join(", ");
  await query.rows(
    admin,
    `create edge type holds; create class /matrix/box (name varchar, size int, keys(name)); insert into /matrix/box (name, size, holds) values ${values}`,
  );
  const [edges, get] = [vi.spyOn(objects.unrestricted, "edges"), vi.spyOn(objects.unrestricted, "get")];
  const rows = await query.rows(
    admin,
    "select name, holds.size, holds.holds.name from /matrix/box where holds.holds.size = 4 order by name desc",
  );
  expect(rows.map(({ name }) => name)).toEqual(names.toReversed());
  expect(rows[0]).toMatchObject({ "holds.size": [3, 4, 5], "holds.holds.name": ["p03", "p04", "p05"] });
  // Two steps for the condition, and two for what is answered.
  expect(edges).toHaveBeenCalledTimes(4);
  expect(get.mock.calls.map(([, refs]) => refs.length)).toEqual([3, 3, 3]);
});

test("columns of top and histogram are lists, those of other aggregates numbers", async () => {
  const text =
    "select top(size, 2) as top, histogram(size, 2) as steps, avg(size) as mean, count(*) as n from /matrix/box";
  const { meta } = await query.run(admin, text);
  expect(meta.columns["/matrix/box"]?.map(({ name, type }) => [name, type])).toEqual([
    ["top", "list"],
    ["steps", "list"],
    ["mean", "double"],
    ["n", "bigint"],
  ]);
});

test("different rows are answered as they are met, so a limit ends the reading", async () => {
  const source = manyBoxes(Infinity);
  const rows = await new QueryService({ objects: source, runtime: { clock: realClock } }).rows(
    admin,
    "select distinct size from /matrix/box limit 5",
  );
  expect(rows).toHaveLength(5);
});

test.each(["order by size limit -1", "limit -1"])(
  "no page of an answer is empty or larger than a page, and a slow reader's neighbours get their turns: %s",
  async (tail) => {
    let nowMs = 0;
    const slow = { ...realClock, monotonicMs: () => (nowMs += 10) };
    const count = 6 * OBJECT_PAGE_MAX + 1;
    const source = manyBoxes(count);
    const spilling = new QueryService({ objects: source, runtime: { clock: slow }, sortFolder: "/nowhere" });
    const { pages, turns } = await pagesOf(spilling, `select size from /matrix/box ${tail}`);
    expect(pages.flat()).toHaveLength(count);
    for (const page of pages) {
      expect(page.length).toBeGreaterThan(0);
      expect(page.length).toBeLessThanOrEqual(OBJECT_PAGE_MAX);
    }
    expect(turns).toBeGreaterThanOrEqual(6);
  },
);

test("an answer without rows has no page", async () => {
  for (const text of [
    "select name from /matrix/box where name = 'none'",
    "select name from /matrix/box where name = 'none' limit 5",
    "select distinct name from /matrix/box where name = 'none' order by name",
    "select name from /matrix/box where name = 'none' union select name from /matrix/room where name = 'none'",
  ])
    expect((await pagesOf(query, text)).pages, text).toEqual([]);
});

test("a row costs what all parts of its condition cost, so that costly ones yield to others sooner", () => {
  const work = (where: string): number => {
    const [statement] = parseScript(`select name from /matrix/box where ${where}`).statements;
    return statement?.kind === "select" ? workOf(statement.where) : Number.NaN;
  };
  const [equal, words] = [work("size = 1"), work("name match 'a b'")];
  expect(words).toBeGreaterThan(5 * equal);
  for (const word of ["and", "or"]) expect(work(`name match 'a' ${word} name match 'b'`)).toBeGreaterThan(1.8 * words);
  expect(work("not name match 'a'")).toBe(words);
});
