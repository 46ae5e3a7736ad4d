import { afterAll, beforeAll, expect, test } from "vitest";
import type { Row } from "../../../common/value.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { Measures } from "./statements/analyzed.ts";
import { QueryService, visibleObjects } from "./index.ts";

const admin = testPrincipal();
const runtime = testRuntime(realClock);

/** Estimates of whole classes: Cassandra keeps no number of them. */
const WHOLE = onCluster ? { box: null, rack: null } : { box: 50, rack: 2 };

let engine: TestEngine;
let objects: ObjectService;
let query: QueryService;

beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  query = new QueryService({ objects, runtime });
  const rows = Array.from({ length: 50 }, (_, n) => `('h${n}', '${n < 10 ? "bob" : "ann"}', 'r${n % 5}')`);
  const pairs = Array.from({ length: 20 }, (_, n) => `(${n}, 'a', '${n < 2 ? "rare" : "usual"}')`);
  const made = [
    "create class /matrix/box (host varchar, owner varchar, rack varchar, keys(host), index(rack)) with version=true",
    "create class /matrix/rack (name varchar, keys(name))",
    `insert into /matrix/box (host, owner, rack) values ${rows.join(", ")}`,
    "create class /matrix/pair (n int, kind varchar, state varchar, keys(n), index(kind, state))",
    `insert into /matrix/pair (n, kind, state) values ${pairs.join(", ")}`,
    "insert into /matrix/rack (name) values ('r0'), ('r1')",
    "create class /matrix/line (n int, kind varchar, index(kind)) with kind='record'",
    `insert into /matrix/line (n, kind) values ${Array.from({ length: 30 }, (_, n) => `(${n}, 'a')`).join(", ")}`,
  ];
  await query.rows(admin, made.join(";"));
});

afterAll(async () => {
  await objects.close();
  await engine.close();
});

const steps = async (statement: string, principal: Principal = admin) =>
  (await query.rows(principal, `explain analyze ${statement}`)).map(
    ({ work, rows }) => `${String(work)}|${String(rows)}`,
  );

test("tells the planned steps, how many rows were read for them and how many were answered", async () => {
  const whole = await query.rows(admin, "explain analyze select host from /matrix/box where owner = 'bob'");
  const planned = await query.rows(admin, "explain select host from /matrix/box where owner = 'bob'");
  expect(whole.slice(0, planned.length)).toEqual(planned.map((row) => ({ ...row, rows: null, ms: null })));
  const told = [
    { work: "read /matrix/box", estimated: WHOLE.box, rows: 50 },
    { work: "filter", estimated: null, rows: 10 },
    { work: "select list", estimated: null, rows: 10 },
    { work: "answer", estimated: null, rows: 10 },
  ];
  expect(whole.slice(planned.length)).toEqual(
    told.map((line, at) => ({ step: planned.length + 1 + at, ms: expect.any(Number) as number, ...line })),
  );
});

test.each<[statement: string, told: readonly string[]]>([
  ["select host from /matrix/box where rack = 'r3' and owner = 'bob'", ["read /matrix/box|10"]],
  ["select host from /matrix/box where rack in ('r1', 'r2')", ["read /matrix/box|20"]],
  ["select n from /matrix/pair where kind = 'a' and state = 'rare'", ["read /matrix/pair|2"]],
  [
    "select host from /matrix/box where rack = 'r3' union select host from /matrix/box",
    [`read /matrix/box|${onCluster ? "null" : 60}`],
  ],
  [
    "select b.host from /matrix/box b join (r:/matrix/rack) on r.name = b.rack",
    [`read /matrix/box|${WHOLE.box}`, `read /matrix/rack|${WHOLE.rack}`],
  ],
  ["select host from /matrix/box where rack = 'r9'", ["read /matrix/box|0"]],
])("%s: estimates by the rarest index entry it goes by, or by the class", async (statement, told) => {
  const rows = await query.rows(admin, `explain analyze ${statement}`);
  const reads = rows.filter(({ work }) => String(work).startsWith("read "));
  expect(reads.map(({ work, estimated }) => `${String(work)}|${String(estimated)}`).sort()).toEqual(told);
});

test.each<[statement: string, told: readonly (number | null)[]]>([
  ["select host from /matrix/box where rack = 'r3' and owner = 'bob'", [10, null, null]],
  ["select host from /matrix/box where owner = 'bob'", [WHOLE.box, null, null]],
  ["delete from /matrix/box where rack in ('r1', 'r2')", [20, null, null]],
  ["update /matrix/box set owner = 'x' where id = 'box:h1'", [1, null, null]],
  ["select host from /matrix/box where rack in (select name from /matrix/rack)", [WHOLE.rack, 0, null, null]],
  ["match (:/matrix/box where rack = 'r4')", [10, null]],
  ["select n from /matrix/line", [30, null]],
  ["select n from /matrix/line where vtime > ago('1 hour') and n > 3", [30, null, null]],
  ["select n from /matrix/line where vtime < '2001-01-01'", [0, null, null]],
  ["select n from /matrix/line where kind = 'a'", [null, null, null]],
  ["select host from /matrix/box as of '2026-01-01'", [null, null, null]],
  ["insert into /matrix/rack (name) values ('r9')", [null]],
])("EXPLAIN %s says about how many objects each read is going to look at", async (statement, told) => {
  const rows = await query.rows(admin, `explain ${statement}`);
  expect(rows.map(({ estimated }) => estimated)).toEqual(told);
});

test("EXPLAIN tells no estimate to whom something of the tenant is hidden, whatever there is", async () => {
  const whole = { class: "/", access: "read" } as const;
  for (const less of [
    { class: "/matrix/box", access: "read", where: "owner = 'bob'" },
    { class: "/matrix/rack", access: "read", hidden: ["tags"] },
    { class: "/matrix/pair", access: "none" },
  ] as const)
    for (const mql of ["select host from /matrix/box where rack = 'r3'", "select n from /matrix/line"]) {
      const rows = await query.rows({ ...admin, data: [whole, less] }, `explain ${mql}`);
      expect(rows.map(({ estimated }) => estimated)).toEqual(rows.map(() => null));
    }
});

test("a read by index reads what it finds, and each class of a join has a line of its own", async () => {
  expect((await steps("select host from /matrix/box where rack = 'r3'")).slice(-4)).toEqual([
    "read /matrix/box|10",
    "filter|10",
    "select list|10",
    "answer|10",
  ]);
  const join = "select b.host from /matrix/box b join (r:/matrix/rack) on r.name = b.rack limit -1";
  const told = await steps(join);
  expect(told.filter((line) => line.startsWith("read ")).sort()).toEqual([
    "read /matrix/box|50",
    "read /matrix/rack|2",
  ]);
  expect(told.at(-1)).toBe("answer|20");
});

test("what is inside a SELECT counts, too, and the statement may be several", async () => {
  const nested =
    "select count(*) as n from (select host from /matrix/box where rack in (select name from /matrix/rack)) x";
  expect((await steps(nested)).slice(-6).sort()).toEqual([
    "answer|1",
    "filter|42",
    "group|1",
    "read /matrix/box|20",
    "read /matrix/rack|2",
    "select list|22",
  ]);
  expect((await steps("select name as rack from /matrix/rack union select rack from /matrix/box")).at(-1)).toBe(
    "answer|5",
  );
});

test("the name of a tree is told as MQL writes it", async () => {
  expect(await steps("select name from /matrix/rack/")).toContain("read /matrix/rack/|2");
});

test.each<[statement: string, told: readonly string[]]>([
  ["select owner, max(host) as last from /matrix/box group by owner", ["filter|50", "group|2"]],
  ["select host from /matrix/box order by host limit 3", ["filter|50", "sort|3"]],
  ["select distinct owner from /matrix/box", ["filter|50", "distinct|2"]],
  [
    "select host, row_number() over (order by host) as n from /matrix/box limit 7",
    ["filter|50", "windows|50", "select list|7"],
  ],
  [
    "select b.host from /matrix/box b join (r:/matrix/rack) on r.name = b.rack where b.owner = 'bob' order by b.host",
    ["join|4", "sort|4"],
  ],
  [
    "select rack from /matrix/box union select name as rack from /matrix/rack",
    ["filter|52", "select list|52", "union|5"],
  ],
])("%s: each step tells what it answers and how long it worked", async (statement, told) => {
  const rows = await query.rows(admin, `explain analyze ${statement}`);
  const names = new Set(told.map((line) => line.split("|")[0]));
  const own = rows.filter(({ work, ms }) => names.has(String(work)) && ms !== null);
  expect(own.map(({ work, rows: count }) => `${String(work)}|${String(count)}`)).toEqual(told);
});

test("a step that waits for the rows of another one does not work", async () => {
  let nowMs = 0;
  const clock = { ...realClock, monotonicMs: () => nowMs };
  const catalog = await objects.catalog(admin);
  const measures = new Measures({ principal: admin, catalog, clock });
  async function* worked(forMs: number, source: AsyncIterable<readonly Row[]>): AsyncGenerator<readonly Row[]> {
    for await (const page of source) {
      nowMs += forMs;
      yield page;
    }
  }
  async function* pages(): AsyncGenerator<readonly Row[]> {
    for (let n = 0; n < 3; n += 1) yield await Promise.resolve([{ n }, { n }]);
  }
  const filtered = measures.step("filter", worked(10, pages()));
  const sorted = measures.step("sort", worked(1, filtered));
  const told = measures.run([], () => Promise.resolve(sorted));
  const lines: Row[] = [];
  for await (const page of told) lines.push(...page);
  expect(lines.map(({ work, rows, ms }) => [work, rows, ms])).toEqual([
    ["filter", 6, 30],
    ["sort", 6, 3],
    ["answer", 6, 33],
  ]);
});

test("rows that the caller may not see are not counted", async () => {
  const bob: Principal = {
    ...admin,
    grants: ["*:read"],
    data: [
      { class: "/matrix", access: "read" },
      { class: "/matrix/box", access: "read", where: "owner = 'bob'" },
    ],
  };
  expect((await steps("select count(*) as n from /matrix/box", bob)).slice(-4)).toEqual([
    "read /matrix/box|10",
    "filter|10",
    "group|1",
    "answer|1",
  ]);
  const told = await query.rows(bob, "explain analyze select count(*) as n from /matrix/rack");
  expect(told.find(({ work }) => work === "read /matrix/rack")).toMatchObject({ estimated: null, rows: 2 });
});

test("rows found by words of a hidden column are not told apart from rows that nothing finds", async () => {
  await query.rows(
    admin,
    `create class /matrix/paper (code varchar, note varchar, covert varchar, keys(code), index(covert)) with autosearch=true;
    insert into /matrix/paper (code, note, covert) values ('a', 'plain', 'buried'), ('b', 'plain', 'other')`,
  );
  const paper = { class: "/matrix/paper", access: "read" } as const;
  const half = { ...paper, group: "rows", where: "code in ('a', 'b')", hidden: ["covert"] };
  const column = { ...paper, group: "column", where: "code = 'none'" };
  for (const data of [[{ ...paper, hidden: ["covert"] }], [half, column]]) {
    const told = (condition: string) =>
      steps(`select code from /matrix/paper where ${condition}`, { ...admin, grants: ["*:read"], data });
    const word = (text: string) => told(`note like '%${text}%'`);
    expect((await word("buried")).slice(-4)).toEqual((await word("nothing")).slice(-4));
    expect((await word("buried")).slice(-4)).toEqual([
      "read /matrix/paper|null",
      "filter|0",
      "select list|0",
      "answer|0",
    ]);
    if (data.length > 1) expect((await told("covert = 'buried'")).slice(-4)[0]).toBe("read /matrix/paper|null");
  }
});

test.each(["delete from /matrix/box", "drop class /matrix/box", "explain select host from /matrix/box"])(
  "%s is refused, and nothing is done",
  async (statement) => {
    await expect(query.rows(admin, `explain analyze ${statement}`)).rejects.toMatchObject({
      message: "[Valid] EXPLAIN ANALYZE runs what it explains: a SELECT, a UNION or a MATCH.",
    });
    expect(await query.rows(admin, "select count(*) as n from /matrix/box")).toEqual([{ n: 50 }]);
  },
);

test("analyze stays a name", async () => {
  await query.rows(
    admin,
    "create class /matrix/named (analyze varchar, keys(analyze)); insert into /matrix/named (analyze) values ('x')",
  );
  expect(await query.rows(admin, "select analyze from /matrix/named where analyze = 'x'")).toEqual([{ analyze: "x" }]);
});
