import { expect, test } from "vitest";
import { http, viewer, narrow, useSchema, get, names, cidOf } from "../../../test/helpers/objects/schema-world.ts";

useSchema();

test("a class record has what clients read", async () => {
  const answer = await get("schema/class/list?id=/matrix/ent/box/");
  expect(answer).toMatchObject({ status: "ok" });
  expect((answer.message as unknown[])[0]).toEqual({
    cid: await cidOf("/matrix/ent/box"),
    pid: await cidOf("/matrix/ent"),
    name: "/matrix/ent/box",
    alias: "",
    nickname: "",
    remedy: "",
    child: ["/matrix/ent/box/rack"],
    subclass: ["/matrix/ent/box/rack"],
    fields: [
      "id",
      "class",
      "day",
      "vtime",
      "ctime",
      "mtime",
      "tags",
      "host",
      "secret",
      "state",
      "labels",
      "size",
      "seen",
    ],
    keys: ["host"],
    keymode: "md5",
    keymethod: 2,
    kind: "entity",
    autosearch: 1,
    version: 1,
    versionttl: -1,
    time_zone: "Europe/Berlin",
    loption: { partition: "day" },
    mtime: expect.any(Number) as number,
    revision: expect.stringMatching(/^[0-9a-f]{24}$/) as string,
    tags: [],
    ttl: 86_400,
    vtimebase: "",
  });
  expect(names(answer)).toEqual(["/matrix/ent/box", "/matrix/ent/box/rack"]);
});

test("a list is of the classes below a number, of a path with those below, or of the root", async () => {
  for (const url of ["schema/class/list", "schema/class/list?id=-1"])
    expect((await get(url)).message).toMatchObject([{ cid: 1, pid: -1, name: "/matrix" }]);
  expect(names(await get("schema/class/list?id=1"))).toEqual(["/matrix/ent", "/matrix/system"]);
  expect(names(await get("schema/class/list?id=/matrix/ent"))).toEqual([
    "/matrix/ent",
    "/matrix/ent/app",
    "/matrix/ent/box",
  ]);
  expect(await get("schema/class/list?id=4711")).toMatchObject({
    status: "error",
    message: "[NotExist] can't find class , cid is 4711 .",
  });
});

test("a tree includes the class that is named; its numbers make the tree", async () => {
  expect(names(await get("schema/class/tree?id=/matrix/ent"))).toEqual([
    "/matrix/ent",
    "/matrix/ent/app",
    "/matrix/ent/box",
    "/matrix/ent/box/rack",
  ]);
  const all = (await get("schema/class/tree")).message as { cid: number; pid: number; name: string }[];
  expect(all.map(({ cid }) => cid)).toEqual(
    expect.arrayContaining(all.map(({ pid }) => pid).filter((pid) => pid !== -1)),
  );
});

test("a field record has what clients read, id and class among them", async () => {
  const answer = await get(`schema/class/fields?id=${await cidOf("/matrix/ent/box/rack")}`);
  expect(names(answer).slice(0, 2)).toEqual(["id", "class"]);
  const fields = new Map((answer.message as { name: string }[]).map((field) => [field.name, field]));
  expect(fields.get("host")).toEqual({
    name: "host",
    colname: "host",
    title: "Host",
    dispname: "Host",
    type: "varchar",
    ftype: "varchar",
    loption: { type: "string" },
    fparam: [],
    isindex: false,
    iskey: true,
    isrel: false,
    note: "",
    remedy: "",
    btype: "varchar",
    mtime: expect.any(Number) as number,
    class: "/matrix/ent",
  });
  expect(fields.get("state")).toMatchObject({
    ftype: "enum",
    btype: "smallint",
    fparam: { "1": ["up", "running"], "0": ["down", "stopped"] },
  });
  expect(fields.get("labels")).toMatchObject({ ftype: "map", fparam: ["varchar", "varchar"] });
  expect(fields.get("size")).toMatchObject({ loption: { type: "long" }, isindex: true, indexing: { state: "ready" } });
  expect(fields.get("seen")).toMatchObject({
    loption: { type: "date", pattern: "timestamp" },
    class: "/matrix/ent/box",
  });
  const whole = await get("schema/class?class=/matrix/ent/box/rack");
  expect(whole).toMatchObject({ message: { name: "/matrix/ent/box/rack", fields: answer.message } });
  expect(whole).toMatchObject({ message: { autosearch: 1, indexing: { state: "ready" } } });
  expect((await get("schema/class?class=/matrix/ent")).message).not.toHaveProperty("indexing");
  expect(await get("schema/class?class=/matrix/ent/box")).toMatchObject({ message: { indexing: { state: "ready" } } });
});

test("tables are the text of a list, with meta, by both methods", async () => {
  for (const method of ["GET", "POST"] as const) {
    for (const [table, some] of [
      ["field", ["id", "host", "slots"]],
      ["ftype", ["varchar", "bitlog"]],
      ["class", ["/matrix", "/matrix/ent/app"]],
    ] as const) {
      const answer = await http.call(viewer, { method, url: `/mxobject/system/schema/${table}` });
      const records = JSON.parse(String(answer.message)) as { name: string }[];
      expect(records.map(({ name }) => name)).toEqual(expect.arrayContaining([...some]));
      expect(answer.meta).toMatchObject({
        type: "select",
        rootclass: `/system/${table}`,
        columns: {
          [`/system/${table}`]: expect.arrayContaining([{ name: "name", title: "name", type: "varchar" }]) as unknown,
        },
      });
    }
  }
  expect(await get("system/schema/secrets")).toMatchObject({ status: "error", code: "not_found" });
});

test("what its reader may not read does not exist: classes, hidden and sealed columns", async () => {
  expect(names(await get("schema/class/list", narrow))).toEqual(["/matrix/ent"]);
  const tree = await get("schema/class/tree", narrow);
  expect(names(tree)).toEqual(["/matrix/ent", "/matrix/ent/app", "/matrix/ent/box/rack"]);
  expect(JSON.stringify(tree)).not.toContain("secret");
  // The class in between is invisible, so its child is attached to the nearest visible class.
  expect((tree.message as object[])[2]).toMatchObject({ pid: await cidOf("/matrix/ent") });
  for (const id of ["/matrix/ent/box", String(await cidOf("/matrix/ent/box")), "/matrix/system"]) {
    for (const url of [`list?id=${id}`, `tree?id=${id}`, `fields?id=${id}`])
      expect(await get(`schema/class/${url}`, narrow)).toMatchObject({ code: "not_found" });
  }
  expect(String((await get("system/schema/field", narrow)).message)).not.toContain('"secret"');
  expect(JSON.stringify(await get("schema/class?class=/matrix/system/vault"))).not.toContain("password");
});
