import { beforeEach, describe, expect, test } from "vitest";
import type { Value } from "../../../common/value.ts";
import type { Edit } from "../objects/index.ts";
import {
  admin,
  audited,
  BOX,
  boxes,
  collect,
  objects,
  openQueries,
  query,
  ruled,
  viewer,
} from "../../../test/helpers/mql/query-world.ts";

openQueries();

async function metaOf(text: string) {
  const result = await query.run(admin, text);
  for await (const page of result.rows) expect(page).toBeInstanceOf(Array);
  return result.meta;
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
    const shown = JSON.stringify(meta);
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
    ["begin insert into /matrix/ent/box host='b';\n insert into /matrix/ent/box nothing=1; end", 2, 30],
    ["insert into /matrix/ent/box set host='b',\n nothing=1", 2, 2],
    ["insert into /matrix/ent/box (host, nothing) values ('b', 'x')", 1, 36],
    ["insert into /matrix/nowhere host='b'", 1, 13],
    ["update /matrix/ent/box set host='b', nothing='x'", 1, 38],
    ["update /matrix/nowhere set host='b'", 1, 8],
    ["drop class /matrix/nowhere", 1, 12],
    ["alter class /matrix/nowhere drop column host", 1, 13],
    ["create class /matrix/other (host varchar, size nothing)", 1, 43],
    ["match (:/matrix/ent/box) -[:contain]-> (:nothing)", 1, 40],
    ["match (:/matrix/ent/box) -[:nothing]-> ()", 1, 26],
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

describe("system classes", () => {
  const calls: string[] = [];

  beforeEach(() => {
    calls.length = 0;
    const columns = [
      { name: "host", type: "varchar" as const, meaning: "Host" },
      { name: "password", type: "varchar" as const, sealed: true as const },
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
    await objects.unrestricted.insert(admin, "/matrix/system/open", [{ host: "a", password: "p" }]);
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
    await objects.unrestricted.insert(admin, "/matrix/system/closed", [{ host: "a" }]);
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
    await objects.unrestricted.insert(admin, "/matrix/system/open", [{ host: "a", password: "p" }]);
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
