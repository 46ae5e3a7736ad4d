import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import {
  QUERY_COLLECT_MAX_ROWS,
  QUERY_DEFAULT_LIMIT_ROWS,
  QUERY_JOIN_MAX_ROWS,
  QUERY_SORT_MAX_ROWS,
  QUERY_TOP_MAX_ROWS,
} from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { Row, Value } from "../../../common/value.ts";
import { realClock } from "../../../test/helpers/clock.ts";
import { MemoryObjects } from "../../../test/helpers/memory-objects.ts";
import { testPrincipal } from "../../../test/helpers/runtime.ts";
import type { AuditEntry } from "../audit/index.ts";
import type { Edit, ObjectRow } from "../objects/index.ts";
import type { DataRule, Principal } from "../permissions/index.ts";
import { QueryService } from "./index.ts";

const admin = testPrincipal();
const viewer = testPrincipal("viewer");

const BOX =
  'create class /matrix/ent/box (host varchar "Host", size int, state enum {"1":["up","running"]}, seen timestamp, tags set<varchar>, keys(host), index(host, size)) with alias=\'b\'';

let objects: MemoryObjects;
let query: QueryService;
let audited: AuditEntry[];

beforeEach(() => {
  objects = new MemoryObjects({ nowMs: () => Date.UTC(2024, 0, 1), pageSize: 10 });
  audited = [];
  const audit = {
    ready: () => Promise.resolve(),
    record(entry: AuditEntry) {
      audited.push(entry);
      return Promise.resolve();
    },
  };
  query = new QueryService({ objects, runtime: { clock: realClock }, audit });
});

function ruled(...data: DataRule[]): Principal {
  return { ...admin, user: "ruled", grants: ["*:read"], data };
}

async function metaOf(text: string) {
  const result = await query.run(admin, text);
  for await (const page of result.rows) expect(page).toBeInstanceOf(Array);
  return result.meta;
}

async function boxes(count: number): Promise<void> {
  await query.run(admin, BOX);
  const rows = Array.from({ length: count }, (_, index) => ({
    host: `h${String(index).padStart(6, "0")}`,
    size: index,
  }));
  await objects.insert(admin, "/matrix/ent/box", rows);
}

describe("meta", () => {
  test("is there for every kind of statement", async () => {
    const kinds: readonly (readonly [string, string])[] = [
      [BOX, "create"],
      ["alter class /matrix/ent/box set alias='x'", "alter"],
      ["insert into /matrix/ent/box host='a'", "insert"],
      ['insert json \'{"class":"/matrix/ent/box","host":"b"}\'', "insert"],
      ["select * from /matrix/ent/box", "select"],
      ["update /matrix/ent/box set size=1", "update"],
      ["explain select * from /matrix/ent/box", "explain"],
      ["create edge type contain", "create edgetype"],
      ["select edge type", "select edge"],
      ["drop edge type contain", "drop edge"],
      ["delete from /matrix/ent/box", "delete"],
      ["begin delete from /matrix/ent/box; select * from /matrix/ent/box; end", "select"],
      ["drop class /matrix/ent/box", "drop"],
    ];
    for (const [text, type] of kinds) expect((await metaOf(text)).type, text).toBe(type);
  });

  test("of a select describes the columns of every class, and those of all under the root class", async () => {
    await query.run(
      admin,
      `${BOX}; create class /matrix/ent/box/rack (slots int "Slots"); create class /matrix/ent/app (title varchar)`,
    );
    const meta = await metaOf("select host, slots as s, state, id from /matrix/ent/box/");
    const host = { name: "host", title: "Host", type: "varchar" };
    const state = { name: "state", title: "state", type: "enum", enum: { 1: ["up", "running"] } };
    const id = { name: "id", title: "id", type: "varchar" };
    const slots = { name: "s", title: "Slots", type: "int" };
    expect(meta).toMatchObject({ type: "select", rootclass: "/matrix/ent/box" });
    expect(meta.columns).toEqual({
      "/matrix/ent/box": [host, slots, state, id],
      "/matrix/ent/box/rack": [host, slots, state, id],
    });
    expect(meta.classes["/matrix/ent/box"]).toEqual({ name: "/matrix/ent/box", alias: "b", remedy: "" });
  });

  test("of groups, joins and unions names what their rows have", async () => {
    await query.run(admin, `${BOX}; create class /matrix/ent/app (host varchar, load double)`);
    const columns = async (text: string) =>
      (await metaOf(text)).columns["/matrix/ent/box"]?.map(({ name, type }) => `${name} ${type}`);
    expect(
      await columns(
        "select host, count(*), sum(size) as s, avg(size) as a, max(seen) as m from /matrix/ent/box group by host",
      ),
    ).toEqual(["host varchar", "count bigint", "s bigint", "a double", "m timestamp"]);
    const joined = "/matrix/ent/box a join (b:/matrix/ent/app) on b.host = a.host";
    expect(await columns(`select a.host, b.host, load, a.id, size as n from ${joined}`)).toEqual([
      "a.host varchar",
      "b.host varchar",
      "load double",
      "id varchar",
      "n int",
    ]);
    const computed = "upper(b.host) as big, a.size + b.load as total, lag(b.load) over (order by a.size) as before";
    expect(await columns(`select ${computed} from ${joined}`)).toEqual([
      "big varchar",
      "total double",
      "before double",
    ]);
    expect(
      await columns("select size + 1 as next, row_number() over (order by host) as place from /matrix/ent/box"),
    ).toEqual(["next double", "place double"]);
    expect(await columns(`select sum(b.load), max(a.seen) as m from ${joined}`)).toEqual([
      "system.sum(b.load) double",
      "m timestamp",
    ]);
    expect(
      await columns("select host, size from /matrix/ent/box union select host, load from /matrix/ent/app"),
    ).toEqual(["host varchar", "size int", "load double"]);
    expect(Object.keys((await metaOf(`select * from ${joined}`)).classes)).toEqual([
      "/matrix/ent/box",
      "/matrix/ent/app",
    ]);
  });

  test("shows no column and no class that the principal may not see", async () => {
    await query.run(admin, `${BOX}; create class /matrix/ent/box/vault (code int)`);
    const who = ruled(
      { class: "/", access: "read", hidden: ["size"] },
      { class: "/matrix/ent/box/vault", access: "none" },
    );
    const { meta } = await query.run(who, "select * from /matrix/ent/box/");
    const shown = JSON.stringify({ ...meta });
    expect(shown).toContain("host");
    expect(shown).not.toMatch(/size|vault|code/);
  });
});

describe("placeholders", () => {
  beforeEach(() => boxes(3));

  test("take their values in order, lists for IN too", async () => {
    const rows = await query.rows(
      admin,
      "select host from /matrix/ent/box where size >= ? and host in ? order by host limit ?",
      [1, ["h000000", "h000001", "h000002"], 1],
    );
    expect(rows).toEqual([{ host: "h000001" }]);
  });

  test("several lists of values are one execution each", async () => {
    const insert = await query.run(admin, "insert into /matrix/ent/box (host, size) values (?, ?)", {
      values: [
        ["x", 10],
        ["y", "20"],
      ],
    });
    expect(await collect(insert.rows)).toEqual([{ count: 2, ids: ["box:x", "box:y"] }]);
    const update = await query.run(admin, "update /matrix/ent/box set size = ? where host = ?", {
      values: [
        [11, "x"],
        [12, "nobody"],
      ],
    });
    expect(await collect(update.rows)).toEqual([{ count: 1 }, { count: 0 }]);
    const select = await query.run(admin, "select size from /matrix/ent/box where host = ?", {
      values: [["x"], ["y"]],
    });
    expect(await collect(select.rows)).toEqual([{ size: 11 }, { size: 20 }]);
  });

  test.each<readonly [string, readonly (readonly Value[])[]]>([
    ["select * from /matrix/ent/box where size = ?", [[]]],
    ["select * from /matrix/ent/box where size = ?", [[1, 2]]],
    ["select * from /matrix/ent/box", [[1]]],
    ["delete from /matrix/ent/box where size = ?; select * from /matrix/ent/box", [[1], [2]]],
  ])("the wrong number of values is refused before anything happens: %s %j", async (text, values) => {
    await expect(query.run(admin, text, { values })).rejects.toMatchObject({ code: "invalid" });
    expect(await query.rows(admin, "select count(*) from /matrix/ent/box")).toEqual([{ count: 3 }]);
  });
});

describe("what is wrong", () => {
  beforeEach(() => boxes(1));

  test.each<readonly [string, number, number]>([
    ["select nothing from /matrix/ent/box", 1, 8],
    ["select host from /matrix/nowhere", 1, 18],
    ["select host, max(host) from /matrix/ent/box", 1, 8],
    ["select host\nfrom /matrix/ent/box\nwhere host = 'a' and (size = 1 or size = 'x')", 3, 35],
    ["select host from /matrix/ent/box where host = 'a' and nothing = 1", 1, 55],
    ["select host from /matrix/ent/box order by host, nothing", 1, 49],
    ["select host from /matrix/ent/box group by nothing", 1, 43],
    ["select host from /matrix/ent/box as of 'soon'", 1, 40],
    ["select a.host from /matrix/ent/box a join (b:/matrix/ent/box) on b.host = b.host", 1, 43],
    ["select a.host from /matrix/ent/box a join (b:/matrix/ent/box) on b.host = a.host where host = 'a'", 1, 88],
    ["select host from /matrix/ent/box;\n\n update /matrix/ent/box set size = 'x'", 3, 2],
    ["begin insert into /matrix/ent/box host='b';\n insert into /matrix/ent/box nothing=1; end", 2, 2],
    ["insert into /matrix/ent/box (host, size) values ('b', 'x')", 1, 1],
    ["delete from /matrix/ent/box where size match 'x'", 1, 35],
  ])("has its place in the text: %s", async (text, line, column) => {
    const failure = query.rows(admin, text);
    await expect(failure).rejects.toMatchObject({ details: { line, column } });
    const isLong = text.includes("\n");
    await failure.catch((error: unknown) =>
      expect(String(error).endsWith(` (line ${line} column ${column})`)).toBe(isLong),
    );
    expect(await query.rows(admin, "select count(*) from /matrix/ent/box")).toEqual([{ count: 1 }]);
  });
});

describe("bounds", () => {
  test("a plain select answers the default limit, LIMIT -1 all; aggregates and changes see all", async () => {
    const count = QUERY_DEFAULT_LIMIT_ROWS * 2;
    await boxes(count);
    expect(await query.rows(admin, "select host from /matrix/ent/box")).toHaveLength(QUERY_DEFAULT_LIMIT_ROWS);
    expect(await query.rows(admin, "select host from /matrix/ent/box limit -1")).toHaveLength(count);
    expect(await query.rows(admin, "select count(*) from /matrix/ent/box")).toEqual([{ count }]);
    expect(await query.rows(admin, "select host, count(*) from /matrix/ent/box group by host")).toHaveLength(count);
    expect(await query.rows(admin, "update /matrix/ent/box set size = 0")).toEqual([{ count }]);
    expect(await query.rows(admin, "delete from /matrix/ent/box")).toEqual([{ count }]);
  });

  test("a select with a limit stops reading as soon as it has enough", async () => {
    const source = endless();
    expect(await source.query.rows(admin, "select host from /matrix/ent/box where size > 2 limit 5")).toHaveLength(5);
    expect(source.pages()).toBe(1);
  });

  test("sorting keeps only the best rows when there is a limit, and is refused when too many would be held", async () => {
    const source = endless(QUERY_SORT_MAX_ROWS + 1_000);
    const best = await source.query.rows(admin, "select size from /matrix/ent/box order by size desc limit 3 offset 1");
    expect(best.map((row) => row.size)).toEqual([
      QUERY_SORT_MAX_ROWS + 998,
      QUERY_SORT_MAX_ROWS + 997,
      QUERY_SORT_MAX_ROWS + 996,
    ]);
    const tooMany = endless(QUERY_SORT_MAX_ROWS + 1_000).query.rows(
      admin,
      "select size from /matrix/ent/box order by size limit -1",
    );
    await expect(tooMany).rejects.toMatchObject({ code: "too_large", details: { limit: "QUERY_SORT_MAX_ROWS" } });
  });

  test("a long sort in memory is whole and in order, equal keys in the order of arrival", async () => {
    const count = QUERY_TOP_MAX_ROWS * 5;
    const rows = await endless(count).query.rows(
      admin,
      `select size, host from /matrix/ent/box order by tags, size desc limit ${count}`,
    );
    expect(rows.map((row) => row.size)).toEqual(Array.from({ length: count }, (_, index) => count - 1 - index));
    const ties = await endless(count).query.rows(
      admin,
      `select size from /matrix/ent/box order by tags limit ${count}`,
    );
    expect(ties.map((row) => row.size)).toEqual(Array.from({ length: count }, (_, index) => index));
  });

  test("a sort of more rows than memory holds goes over the disk, of which nothing is left", async () => {
    const sortFolder = await mkdtemp(join(tmpdir(), "odp-sort-"));
    const count = QUERY_SORT_MAX_ROWS + 1_000;
    const { query: spilling } = endless(count, { sortFolder });
    const result = await spilling.run(admin, "select size from /matrix/ent/box order by size desc limit -1");
    let expected = count;
    for await (const page of result.rows)
      for (const row of page)
        if (row.size !== (expected -= 1)) throw new Error(`${String(row.size)} instead of ${expected}`);
    expect(expected).toBe(0);
    expect(await readdir(sortFolder)).toEqual([]);
    await rm(sortFolder, { recursive: true });
  });

  test("a join that would hold too many objects is refused", async () => {
    const all = endless(QUERY_JOIN_MAX_ROWS + 2_000).query.rows(
      admin,
      "select count(*) from /matrix/ent/box a join (b:/matrix/ent/box) on b.size = a.size",
    );
    await expect(all).rejects.toMatchObject({ code: "too_large", details: { limit: "QUERY_JOIN_MAX_ROWS" } });
  });

  test("collecting too many rows is refused", async () => {
    const all = endless(QUERY_COLLECT_MAX_ROWS + 2_000).query.rows(admin, "select size from /matrix/ent/box limit -1");
    await expect(all).rejects.toMatchObject({ code: "too_large", details: { limit: "QUERY_COLLECT_MAX_ROWS" } });
  });

  test("a query lets others work between its rows", async () => {
    let nowMs = 0;
    const slow = { ...realClock, monotonicMs: () => (nowMs += 10) };
    let others = 0;
    let running = true;
    const other = (): void => {
      others += 1;
      if (running) setImmediate(other);
    };
    setImmediate(other);
    await endless(10_000, { clock: slow }).query.rows(admin, "select count(*), max(size) from /matrix/ent/box");
    running = false;
    expect(others).toBeGreaterThan(50);
  });

  test("a query ends when its caller goes away", async () => {
    const gone = new AbortController();
    const { query: endlessQuery } = endless();
    const result = await endlessQuery.run(admin, "select host from /matrix/ent/box limit -1", { signal: gone.signal });
    const rows = result.rows[Symbol.asyncIterator]();
    expect((await rows.next()).done).toBe(false);
    gone.abort();
    await expect(drain(rows)).rejects.toMatchObject({ code: "cancelled" });
  });
});

describe("reading", () => {
  beforeEach(() => boxes(5));

  test.each<readonly [string, object]>([
    ["id = 'box:h000001'", { ids: ["box:h000001"] }],
    ["host = 'x' and (size = 1 or seen = 2)", { where: [{ kind: "equals", column: "host", values: ["x"] }] }],
    [
      "size = 1 or (size in (2, '3') or size = 4)",
      { where: [{ kind: "equals", column: "size", values: [1, 2, 3, 4] }] },
    ],
    ["id = 'box:a' or id in ('box:b')", { ids: ["box:a", "box:b"] }],
    ["size in ('1', 2)", { where: [{ kind: "equals", column: "size", values: [1, 2] }] }],
    [
      "size > 1 and size <= '9'",
      {
        where: [
          { kind: "range", column: "size", from: 1 },
          { kind: "range", column: "size", to: 9 },
        ],
      },
    ],
    [
      "seen between '2024-01-01' and 1704153600000",
      { where: [{ kind: "range", column: "seen", from: 1704067200000, to: 1704153600000 }] },
    ],
    ["mtime >= '2024-01-01'", { where: [{ kind: "range", column: "vtime", from: 1704067200000 }] }],
    ["day = '2024-01-01'", { where: [{ kind: "range", column: "vtime", from: 1704067200000, to: 1704153599999 }] }],
    ["tags contains 'x'", { where: [{ kind: "equals", column: "tags", values: ["x"] }] }],
    [
      "host match 'disk web-1 a*'",
      {
        where: [
          { kind: "words", words: ["disk", "web-1"] },
          { kind: "pattern", pattern: "a*" },
        ],
      },
    ],
    [
      "host like 'ERROR on web*'",
      {
        where: [
          { kind: "words", words: ["error", "on"] },
          { kind: "pattern", pattern: "we*" },
        ],
      },
    ],
    ["host prefix 'ERR'", { where: [{ kind: "pattern", pattern: "err*" }] }],
    ["state = 1", { where: [{ kind: "equals", column: "state", values: ["1"] }] }],
  ])("a condition narrows the read: %s", async (where, expected) => {
    objects.reads.length = 0;
    await query.rows(admin, `select host from /matrix/ent/box where ${where} limit -1`);
    expect(objects.reads).toMatchObject([{ class: "/matrix/ent/box", subtree: false, ...expected }]);
  });

  test.each([
    "host = 'a' or size = 1",
    "not host = 'a'",
    "host != 'a'",
    "host like 'a*'",
    "host contains 'a'",
    "host match '*'",
    "host notmatch 'a'",
    "tags match 'a'",
    "tags = ['a','b']",
    "host is null",
  ])("a condition that cannot narrow does not: %s", async (where) => {
    objects.reads.length = 0;
    await query.rows(admin, `select host from /matrix/ent/box where ${where} limit -1`);
    expect(objects.reads).toMatchObject([{ class: "/matrix/ent/box", subtree: false }]);
    expect(objects.reads[0]).not.toHaveProperty("where");
  });

  test.each<[string, readonly string[] | undefined]>([
    ["select host from /matrix/ent/box where size > 1 order by state", ["host", "state", "size"]],
    ["select count(*), max(size) from /matrix/ent/box group by HOST having min(state) > 0", ["size", "host", "state"]],
    [
      "select b.host as h, case when b.size > 1 then b.state end as s from /matrix/ent/box b",
      ["host", "size", "state"],
    ],
    ["select id, vtime from /matrix/ent/box", ["id", "vtime"]],
    ["select id from /matrix/ent/box where host = 'a' limit 2 cursor ''", ["id", "host"]],
    ["select * from /matrix/ent/box where size = 1", undefined],
  ])("a read names the columns that its answer follows from: %s", async (text, columns) => {
    objects.reads.length = 0;
    await query.rows(admin, text);
    expect(objects.reads.map((read) => read.columns)).toEqual([columns]);
  });

  test("the columns of a row condition are read too", async () => {
    objects.reads.length = 0;
    await query.rows(ruled({ class: "/", access: "read", where: "state = 1" }), "select host from /matrix/ent/box");
    expect(objects.reads[0]?.columns).toEqual(["host", "state"]);
  });

  test("a condition on the class narrows the classes that are read", async () => {
    await query.run(
      admin,
      "create class /matrix/ent/box/rack (slots int); create class /matrix/ent/box/vm (cores int)",
    );
    objects.reads.length = 0;
    await query.rows(
      admin,
      "select host from /matrix/ent/box/ where class = '/matrix/ent/box/vm' or class in ('/matrix/ent/box', '/matrix/ent')",
    );
    expect(objects.reads.map(({ class: path, subtree }) => [path, subtree])).toEqual([
      ["/matrix/ent/box", false],
      ["/matrix/ent/box/vm", false],
    ]);
    objects.reads.length = 0;
    expect(await query.rows(admin, "select host from /matrix/ent/box/ where class = '/matrix/ent'")).toEqual([]);
    expect(objects.reads).toEqual([]);
  });

  test("the state of a time is asked for in every read of the statement", async () => {
    const asked = async (text: string) => {
      objects.reads.length = 0;
      await query.rows(admin, text);
      return objects.reads.map((read) => read.asOfMs);
    };
    const early = Date.UTC(2023, 0, 1);
    expect(await asked("select host from /matrix/ent/box as of '2023-01-01'")).toEqual([early]);
    expect(await asked(`select host from /matrix/ent/box where size = 1 limit 5 as of ${early}`)).toEqual([early]);
    expect(
      await asked(
        "select a.host from /matrix/ent/box a join (b:/matrix/ent/box) on b.host = a.host as of '2023-01-01'",
      ),
    ).toEqual([early, early]);
    expect(
      await asked("select host from /matrix/ent/box as of 1 union select host from /matrix/ent/box as of '2023-01-01'"),
    ).toEqual([1, early]);
    expect(
      await asked(
        "select host from /matrix/ent/box as of 1 union select host from /matrix/ent/box limit 9 as of '2023-01-01'",
      ),
    ).toEqual([1, early]);
    await expect(query.rows(admin, "select host from /matrix/ent/box as of 'soon'")).rejects.toMatchObject({
      code: "invalid",
    });
  });

  test("what is joined to few objects is read by what joins them", async () => {
    objects.reads.length = 0;
    await query.rows(
      admin,
      "select a.host from /matrix/ent/box a join (b:/matrix/ent/box) on b.size = a.size join (c:/matrix/ent/box) on c.id = a.id where a.host = 'h000002' and b.tags = 'x'",
    );
    expect(objects.reads.map(({ where, ids }) => ({ where, ids }))).toEqual([
      { where: [{ kind: "equals", column: "host", values: ["h000002"] }], ids: undefined },
      {
        where: [
          { kind: "equals", column: "tags", values: ["x"] },
          { kind: "equals", column: "size", values: [2] },
        ],
        ids: undefined,
      },
      { where: undefined, ids: ["box:h000002"] },
    ]);
  });

  test.each<readonly [string, readonly string[]]>([
    [
      "select host from /matrix/ent/box where size = 1 order by host limit 3",
      ["scan of class /matrix/ent/box", "filter size = 1", "keep the first 3 by host", "limit 3"],
    ],
    [
      "select host, count(*) from /matrix/ent/box group by host",
      ["scan of class /matrix/ent/box", "group by host: count(*)"],
    ],
    [
      "select a.host from /matrix/ent/box a join (b:/matrix/ent/box) on b.size = a.size where a.size = 1 and (b.size = 2 or a.host = 'x') limit 1",
      [
        "scan of class /matrix/ent/box",
        "filter a.size = 1",
        "scan of class /matrix/ent/box",
        "join by b.size = a.size, /matrix/ent/box held in memory",
        "filter b.size = 2 OR a.host = 'x'",
        "limit 1",
      ],
    ],
    [
      "select host from /matrix/ent/box union select host from /matrix/ent/box limit 1",
      ["scan of class /matrix/ent/box", "scan of class /matrix/ent/box", "different rows of the parts", "limit 1"],
    ],
    ["select edge type", ["table of edge types"]],
    ["insert into /matrix/ent/box (host) values ('x'), ('y')", ["insert 2 into /matrix/ent/box"]],
    ['insert json \'{"class":"/matrix/ent/box","host":"b"}\'', ["insert 1 into /matrix/ent/box"]],
    [
      "update /matrix/ent/box set size = 1 where host = 'x'",
      ["scan of class /matrix/ent/box", "filter host = 'x'", "update what is found"],
    ],
    ["delete from /matrix/ent/box", ["scan of class /matrix/ent/box", "delete what is found"]],
    ["create class /matrix/x (a int)", ["create /matrix/x"]],
    ["alter class /matrix/ent/box add column b int", ["alter /matrix/ent/box"]],
    ["drop class /matrix/ent/box", ["drop /matrix/ent/box"]],
    ["create edge type runs", ["create edgetype runs"]],
    ["drop edge type runs", ["drop edge runs"]],
    [
      "begin delete from /matrix/ent/box; select edge type; end",
      ["scan of class /matrix/ent/box", "delete what is found", "table of edge types"],
    ],
    ["explain select edge type", ["table of edge types"]],
  ])("EXPLAIN tells what would be done, and does nothing: %s", async (text, steps) => {
    const rows = await query.rows(admin, `explain ${text}`);
    expect(rows.map((row) => row.work)).toEqual(steps);
    expect(rows.map((row) => row.step)).toEqual(steps.map((_, index) => index + 1));
    expect(await query.rows(admin, "select count(*) from /matrix/ent/box where size >= 0")).toEqual([{ count: 5 }]);
    expect((await objects.catalog(admin)).edgeTypes()).toEqual([]);
  });

  test("the row condition narrows too, and is not shown by EXPLAIN", async () => {
    const who = ruled({ class: "/", access: "read", where: "host = 'h000002'" });
    objects.reads.length = 0;
    expect(await query.rows(who, "select host from /matrix/ent/box where size >= 0")).toEqual([{ host: "h000002" }]);
    expect(objects.reads[0]?.where).toContainEqual({ kind: "equals", column: "host", values: ["h000002"] });
    const steps = await query.rows(who, "explain select host from /matrix/ent/box where size >= 0");
    expect(JSON.stringify(steps)).not.toContain("h000002");
    expect(steps.map((row) => row.work)).toContain("filter by the row condition of the principal");
  });

  test("a row condition that does not parse, or calls functions, lets nothing through and does not show itself", async () => {
    for (const where of ["host =", "count(*) = 1", "size = 'many'"]) {
      await expect(
        query.rows(ruled({ class: "/", access: "read", where }), "select host from /matrix/ent/box"),
      ).rejects.toMatchObject({ code: "internal" });
    }
    expect(
      await query.rows(ruled({ class: "/", access: "read", where: "nothing = 1" }), "select host from /matrix/ent/box"),
    ).toEqual([]);
  });

  test("records come newest first without sorting", async () => {
    await query.run(admin, "create class /matrix/log (line varchar) with kind='record'");
    const records = ["one", "two", "three"].map((line, index) => ({
      values: { line },
      timeMs: 1_000 * index,
      identity: line,
    }));
    await objects.ingest(admin, "/matrix/log", records);
    objects.reads.length = 0;
    expect(await query.rows(admin, "select line from /matrix/log limit 2")).toEqual([
      { line: "three" },
      { line: "two" },
    ]);
    expect(await query.rows(admin, "select line, vtime from /matrix/log order by vtime desc limit 1")).toEqual([
      { line: "three", vtime: 2_000 },
    ]);
    expect(await query.rows(admin, "select line from /matrix/log order by vtime limit 1")).toEqual([{ line: "one" }]);
    expect(objects.reads.map((read) => read.newestFirst)).toEqual([true, true, undefined]);
  });

  test("* answers the pseudo fields and every column, null when not set", async () => {
    const [row] = await query.rows(admin, "select * from /matrix/ent/box where id = 'box:h000003'");
    expect(row).toEqual({
      id: "box:h000003",
      class: "/matrix/ent/box",
      day: "2024-01-01",
      vtime: expect.any(Number) as number,
      ctime: expect.any(Number) as number,
      mtime: expect.any(Number) as number,
      host: "h000003",
      size: 3,
      state: null,
      seen: null,
      tags: null,
    });
  });

  test("of several statements the last one answers; reads before it are checked but not done", async () => {
    objects.reads.length = 0;
    expect(await query.rows(admin, "select host from /matrix/ent/box; select count(*) from /matrix/ent/box")).toEqual([
      { count: 5 },
    ]);
    expect(objects.reads).toHaveLength(1);
    await expect(
      query.rows(admin, "select nothing from /matrix/ent/box; select count(*) from /matrix/ent/box"),
    ).rejects.toMatchObject({ code: "not_found" });
    await expect(query.rows(admin, " ; -- nothing")).rejects.toMatchObject({ code: "syntax" });
  });
});

describe("system classes", () => {
  const calls: string[] = [];

  beforeEach(() => {
    calls.length = 0;
    const columns = [
      { name: "host", type: "varchar" as const },
      { name: "password", type: "varchar" as const, sealed: true },
    ];
    objects.registerSystemClass({
      path: "/system/closed",
      columns,
      keys: ["host"],
      guard: { reading: { permission: "objects:read" } },
    });
    objects.registerSystemClass({
      path: "/system/open",
      columns,
      keys: ["host"],
      guard: {
        reading: { permission: "objects:read" },
        permission: "objects:write",
        insert: (_, rows) =>
          called(
            rows.map((row) => `open:${String(row.host)}`),
            `insert ${JSON.stringify(rows)}`,
          ),
        update: (_, id, edits: readonly Edit[]) => called(true, `update ${id} ${JSON.stringify(edits)}`),
        remove: (_, ids) => called(ids.length, `remove ${ids.join(",")}`),
      },
    });
  });

  function called<T>(answer: T, call: string): Promise<T> {
    calls.push(call);
    return Promise.resolve(answer);
  }

  test("are changed by their owner only", async () => {
    await objects.insert(admin, "/matrix/system/open", [{ host: "a", password: "p" }]);
    expect(await query.rows(admin, "insert into /matrix/system/open host='b'")).toEqual([
      { count: 1, ids: ["open:b"] },
    ]);
    await query.rows(admin, "update /matrix/system/open set host='c'; delete from /matrix/system/ where host = 'a'");
    expect(calls).toEqual([
      'insert [{"host":"b"}]',
      'update open:a [{"column":"host","operation":"set","value":"c"}]',
      "remove open:a",
    ]);
    expect(await query.rows(admin, "select host from /matrix/system/open")).toEqual([{ host: "a" }]);
  });

  test("whose owner offers nothing refuse", async () => {
    await objects.insert(admin, "/matrix/system/closed", [{ host: "a" }]);
    for (const text of [
      "insert into /matrix/system/closed host='b'",
      "update /matrix/system/closed set host='b'",
      "delete from /matrix/system/closed",
    ]) {
      await expect(query.rows(admin, text), text).rejects.toMatchObject({ code: "denied" });
    }
    expect(await query.rows(admin, "select host from /matrix/system/closed")).toEqual([{ host: "a" }]);
  });

  test("never show a sealed column", async () => {
    await objects.insert(admin, "/matrix/system/open", [{ host: "a", password: "p" }]);
    for (const text of [
      "select password from /matrix/system/open",
      "select host from /matrix/system/open where password = 'p'",
      "select max(password) from /matrix/system/open",
      "select host from /matrix/system/open order by password",
      "insert into /matrix/system/open host='x', password='q'",
      "update /matrix/system/open set password='q'",
      "select host from /matrix/ where password like '*'",
    ]) {
      await expect(query.rows(admin, text), text).rejects.toMatchObject({
        code: "not_found",
        message: "Field password Not Exist",
      });
    }
    expect(JSON.stringify(await query.rows(admin, "select * from /matrix/system/open"))).not.toContain("password");
    expect(JSON.stringify(await query.rows(admin, "select * from /system/class"))).not.toContain("password");
  });
});

describe("audit", () => {
  test("every change and every refused change leaves an entry without values, a read none", async () => {
    await boxes(1);
    audited.length = 0;
    await query.rows(admin, "select * from /matrix/ent/box");
    await query.rows(
      admin,
      "insert into /matrix/ent/box host='very-secret'; delete from /matrix/ent/box where host='very-secret'",
    );
    await expect(query.rows(viewer, "update /matrix/ent/box set size=1")).rejects.toMatchObject({ code: "denied" });
    await expect(query.rows(admin, "update /matrix/ent/box set nothing=1")).rejects.toMatchObject({
      code: "not_found",
    });
    expect(audited.map(({ user, action, outcome, code }) => ({ user, action, outcome, code }))).toEqual([
      {
        user: "administrator",
        action: "MQL insert /matrix/ent/box, delete /matrix/ent/box",
        outcome: "ok",
        code: "ok",
      },
      { user: "viewer", action: "MQL update /matrix/ent/box", outcome: "denied", code: "denied" },
      { user: "administrator", action: "MQL update /matrix/ent/box", outcome: "failed", code: "not_found" },
    ]);
  });
});

/** A box class whose rows are made while they are read, 1,000 a page. */
function endless(
  count = Infinity,
  { clock = realClock, ...options }: { readonly clock?: Clock; readonly sortFolder?: string } = {},
): { readonly query: QueryService; pages(): number } {
  let pages = 0;
  const source = new MemoryObjects({ nowMs: () => 0 });
  const ready = source.createClass(admin, {
    path: "/matrix/ent/box",
    columns: [
      { name: "host", type: "varchar" },
      { name: "size", type: "int" },
      { name: "tags", type: "varchar" },
    ],
  });
  source.read = async function* () {
    const view = await ready;
    for (let at = 0; at < count; at += 1_000) {
      pages += 1;
      const length = Math.min(1_000, count - at);
      yield Array.from({ length }, (_, index): ObjectRow => {
        const values: Row = { host: `h${at + index}`, size: at + index };
        return { id: `box:${at + index}`, class: view, values, vtimeMs: 0, ctimeMs: 0 };
      });
    }
  };
  return { query: new QueryService({ objects: source, runtime: { clock }, ...options }), pages: () => pages };
}

async function collect(rows: AsyncIterable<readonly Row[]>): Promise<Row[]> {
  const all: Row[] = [];
  for await (const page of rows) all.push(...page);
  return all;
}

async function drain(rows: AsyncIterator<readonly Row[]>): Promise<void> {
  while (!(await rows.next()).done);
}

test("a relation to an object that is not there is kept and told, for whatever its writer does not see; one that a later statement makes is not", async () => {
  const warned = async (text: string, who = admin) => (await query.run(who, text)).warnings;
  await query.rows(
    admin,
    "create edge type hangs; create class /matrix/hook (name varchar, owner varchar, keys(name)) ",
  );
  const missing = (id: string) => `hangs: there is no ${id}; the relation is kept and holds when the object comes.`;
  expect(await warned("insert into /matrix/hook name='a', hangs='hook:b'")).toEqual([missing("hook:b")]);
  expect(
    await warned("insert into /matrix/hook (name, hangs) values ('c', 'hook:d'), ('d', 'hook:a')"),
  ).toBeUndefined();
  expect(
    await warned(
      "begin insert into /matrix/hook name='e', hangs='hook:f'; insert into /matrix/hook name='g', hangs=''; end",
    ),
  ).toEqual([missing("hook:f")]);
  expect(
    await warned("update /matrix/hook hangs = hangs - 'hook:x' where name = 'a'; insert into /matrix/hook name='f'"),
  ).toBeUndefined();
  expect(await warned('update /matrix/hook hangs = ["hook:x", "hook:a"] where name = \'a\'')).toEqual([
    missing("hook:x"),
  ]);
  const ann = {
    ...admin,
    data: [
      { class: "/matrix", access: "write" as const },
      { class: "/matrix/hook", access: "write" as const, where: "owner = 'ann'" },
    ],
  };
  expect(await warned("insert into /matrix/hook name='own', owner='ann', hangs='hook:a'", ann)).toEqual([
    missing("hook:a"),
  ]);
});
