import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { QueryService, visibleObjects } from "./index.ts";

const admin = testPrincipal();
let engine: TestEngine;
let objects: ObjectService;
let query: QueryService;

beforeAll(async () => {
  engine = await openTestEngine();
  const runtime = testRuntime(realClock);
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  query = new QueryService({ objects, runtime });
  await query.rows(
    admin,
    `
    create class /matrix/box (host varchar, size int, rack varchar, note text, keys(host), index(size)) with version=true, autosearch=true;
    create class /matrix/rack (name varchar, room varchar, keys(name)) with version=true;
    create class /matrix/plain (host varchar, keys(host));
    insert into /matrix/box (host, size, rack, note) values ('a', 1, 'r1', 'first words'), ('b', 1, 'r1', 'other words') at '2024-01-01';
    insert into /matrix/rack (name, room) values ('r1', 'north') at '2024-01-01';
    insert into /matrix/box (host, size, note) values ('a', 2, 'second words') at '2024-02-01';
    insert into /matrix/rack (name, room) values ('r1', 'south') at '2024-03-01'`,
  );
});

afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

async function at(time: string, text: string): Promise<unknown> {
  return query.rows(admin, text.replace("@", `AS OF '${time}'`));
}

describe("the state of a time", () => {
  test("is what conditions, orders and aggregates see, by an index or without", async () => {
    const early = "2024-01-15 00:00:00";
    expect(await at(early, "select host, size from /matrix/box @ order by host")).toEqual([
      { host: "a", size: 1 },
      { host: "b", size: 1 },
    ]);
    expect(await at(early, "select host from /matrix/box @ where size = 2")).toEqual([]);
    expect(await at(early, "select sum(size) as s from /matrix/box @ where size = 1")).toEqual([{ s: 2 }]);
    expect(await at(early, "select host from /matrix/box @ where note match 'first'")).toEqual([{ host: "a" }]);
    expect(await at("2024-02-15", "select host, size, note from /matrix/box where size > 1 limit 10 @")).toEqual([
      { host: "a", size: 2, note: "second words" },
    ]);
    expect(await at("2023-12-31", "select host from /matrix/box @")).toEqual([]);
    expect(await at(early, "select size, vtime from /matrix/box @ where id = 'box:a'")).toEqual([
      { size: 1, vtime: Date.UTC(2024, 0, 1) },
    ]);
  });

  test("is that of every class of a JOIN, and of each part of a UNION", async () => {
    const text =
      "select a.host, r.room from /matrix/box @ a join (r:/matrix/rack) on r.name = a.rack where a.host = 'a'";
    expect(await at("2024-02-15", text)).toEqual([{ host: "a", room: "north" }]);
    expect(await at("2024-03-15", text)).toEqual([{ host: "a", room: "south" }]);
    const union =
      "select size from /matrix/box @ where host = 'a' union all select size from /matrix/box as of '2024-02-15' where host = 'a' order by size";
    expect(await at("2024-01-15", union)).toEqual([{ size: 1 }, { size: 2 }]);
  });

  test("has the relations there were, their ends by the row condition of then", async () => {
    await query.rows(
      admin,
      `create edge type holds;
      insert into /matrix/rack (name, room, holds) values ('r9', 'north', 'box:a') at '2024-01-02';
      insert into /matrix/rack (name, holds) values ('r9', ["box:b"]) at '2024-02-02'`,
    );
    const text = "select holds from /matrix/rack @ where name = 'r9'";
    expect(await at("2024-01-15", text)).toEqual([{ holds: ["box:a"] }]);
    const early: Principal = {
      ...admin,
      data: [
        { class: "/", access: "read" },
        { class: "/matrix/box", access: "read", where: "size = 1" },
      ],
    };
    const seen = (time: string) => query.rows(early, text.replace("@", `as of '${time}'`));
    expect(await seen("2024-01-15")).toEqual([{ holds: ["box:a"] }]);
    expect(await query.rows(early, "select holds from /matrix/rack where name = 'r9'")).toEqual(
      await seen("2024-03-15"),
    );
    expect((await query.run(admin, "select holds from /matrix/rack")).meta.columns["/matrix/rack"]).toEqual([
      { name: "holds", title: "holds", type: "set" },
    ]);
  });

  test("is paged like the current one", async () => {
    const first = await query.run(admin, "select host from /matrix/box order by host limit 1 as of '2024-01-15'", {
      cursor: "",
    });
    const rows = [];
    for await (const page of first.rows) rows.push(...page);
    const next = await query.run(admin, "select host from /matrix/box order by host limit 1 as of '2024-01-15'", {
      cursor: String(first.meta.cursor),
    });
    for await (const page of next.rows) rows.push(...page);
    expect(rows).toEqual([{ host: "a" }, { host: "b" }]);
  });

  test("shows what the principal may see, and a row condition looks at that state", async () => {
    const who: Principal = {
      ...admin,
      user: "ruled",
      grants: ["*:read"],
      data: [{ class: "/", access: "read", where: "size = 1", hidden: ["note"] }],
    };
    expect(await query.rows(who, "select host from /matrix/box as of '2024-01-15' order by host")).toEqual([
      { host: "a" },
      { host: "b" },
    ]);
    expect(await query.rows(who, "select host from /matrix/box as of '2024-02-15' order by host")).toEqual([
      { host: "b" },
    ]);
    await expect(query.rows(who, "select note from /matrix/box as of '2024-01-15'")).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("is an error for classes that keep no versions", async () => {
    await expect(query.rows(admin, "select host from /matrix/plain as of '2024-01-15'")).rejects.toMatchObject({
      code: "invalid",
    });
    await expect(
      query.rows(
        admin,
        "select a.host from /matrix/box a join (b:/matrix/plain) on b.host = a.host as of '2024-01-15'",
      ),
    ).rejects.toMatchObject({ code: "invalid" });
  });
});
