import { beforeEach, describe, expect, test } from "vitest";
import { EXPLAINED_RULE_MAX_CHARACTERS, EXPLAINED_RULES_MAX } from "../../../common/limits.ts";
import type { DataRule } from "../permissions/index.ts";
import { admin, boxes, objects, openQueries, query, ruled } from "../../../test/helpers/mql/query-world.ts";

openQueries();

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

  test("EXPLAIN names the rules that hide something to those who may read rules; others learn that there are some", async () => {
    const rules = [
      { class: "/matrix/ent/box", access: "write", where: "host = 'h000002'", group: "few" },
      { class: "/", access: "write", hidden: ["size"] },
    ] as const;
    const told = async (text: string, grants: readonly string[]) => {
      const steps = await query.rows({ ...admin, data: rules, grants }, `explain ${text}`);
      return steps.map(({ work }) => work).filter((work) => !/class|index|limit/.test(String(work)));
    };
    const text = "select host from /matrix/ent/box";
    const [rows, columns] = ["filter by the row condition of the principal", "without the columns that rules hide"];
    expect(await told(text, ["objects:read"])).toEqual([columns]);
    expect(await told(text, ["objects:read", "perms:read"])).toEqual([
      columns,
      "rule of the group few for /matrix/ent/box: rows where host = 'h000002'",
      "rule of the user for /: without size",
    ]);
    for (const change of ["update /matrix/ent/box set host = 'a'", "match (a)-[]->(b)"])
      expect(await told(change, ["objects:*", "perms:read"])).toEqual(
        expect.arrayContaining([columns, "rule of the user for /: without size"]),
      );
    const [first] = rules;
    const few = { ...admin, data: [first], grants: ["objects:read"] };
    expect((await query.rows(few, `explain ${text}`)).map(({ work }) => work)).toContain(rows);
    expect(await query.rows({ ...admin, data: [{ class: "/", access: "read" }] }, `explain ${text}`)).toHaveLength(2);
  });

  test("EXPLAIN names only what a rule hides of the classes that are read, in one bounded line each", async () => {
    const told = async (data: readonly DataRule[]) => {
      const who = { ...admin, data, grants: ["objects:read", "perms:read"] };
      const steps = await query.rows(who, "explain select host from /matrix/ent/box");
      return steps.map(({ work }) => String(work)).filter((work) => /^rule|^more/.test(work));
    };
    const elsewhere = { where: "nowhere = 'secret'", fields: ["nowhere"] };
    const here = { where: "size\n>\r\n1", fields: ["size"] };
    const rule = { class: "/", access: "read", group: "g" } as const;
    expect(await told([{ ...rule, anywhere: [elsewhere, here], rowsOnly: true }])).toEqual([
      "rule of the group g for /: rows where size > 1",
    ]);
    expect(await told([{ ...rule, anywhere: [elsewhere] }])).toEqual([]);
    const long = `host in ('${"x".repeat(EXPLAINED_RULE_MAX_CHARACTERS)}')`;
    const [line = ""] = await told([{ ...rule, where: long }]);
    expect(line).toHaveLength(EXPLAINED_RULE_MAX_CHARACTERS);
    expect(line).toMatch(/^rule of the group g for \/: rows where host in \('x+ … \(cut off\)$/);
    const many = Array.from({ length: 1_000 }, (_, at) => ({ ...rule, group: `g${at}`, where: `size > ${at}` }));
    const lines = await told(many);
    expect([lines.length, lines.at(-1)]).toEqual([
      EXPLAINED_RULES_MAX + 1,
      `more rules than EXPLAINED_RULES_MAX (${EXPLAINED_RULES_MAX}): the others are not named`,
    ]);
  });

  test("the row condition narrows too, and is not shown by EXPLAIN", async () => {
    const who = { ...ruled({ class: "/", access: "read", where: "host = 'h000002'" }), grants: ["objects:read"] };
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
    await objects.unrestricted.ingest(admin, "/matrix/log", records);
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
