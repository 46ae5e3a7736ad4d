import { describe, expect, test } from "vitest";
import type { Row } from "../../../common/value.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine } from "../../../test/helpers/engines/engine.ts";
import { TestClock, testRuntime } from "../../../test/helpers/time/runtime.ts";
import {
  admin,
  BOX,
  engine,
  idsOf,
  newService,
  objects,
  openObjects,
  readAll,
  valuesOf,
} from "../../../test/helpers/objects/object-world.ts";
import { decodeStored } from "../../store/format.ts";
import { ObjectService } from "./index.ts";

openObjects();

describe("objects", () => {
  test("values come back in the one form of their type", async () => {
    await objects.createClass(admin, BOX);
    const row = {
      host: "h1",
      size: "9007199254740993",
      config: '{"a":"1"}',
      ports: "[80,443]",
      note: "ok",
      tags: ["x/y"],
      vtime: 5,
      id: "",
    };
    expect(await objects.unrestricted.insert(admin, BOX.path, [row])).toEqual(["box:h1"]);
    expect(await valuesOf("box:h1")).toEqual({
      host: "h1",
      size: "9007199254740993",
      config: { a: "1" },
      ports: [443, 80],
      note: "ok",
      tags: ["x/y"],
    });
  });

  test("a bad value names its column and row, and nothing is written", async () => {
    await objects.createClass(admin, BOX);
    await expect(
      objects.unrestricted.insert(admin, BOX.path, [{ host: "h1" }, { host: "h2", size: "abc" }]),
    ).rejects.toMatchObject({
      code: "invalid",
      message: '[Format] column size: "abc" is no bigint.',
      details: { column: "size", row: 1 },
    });
    await expect(objects.unrestricted.insert(admin, BOX.path, [{ host: "h1", nothing: 1 }])).rejects.toMatchObject({
      code: "not_found",
    });
    await expect(objects.unrestricted.insert(admin, BOX.path, [{ note: "no key" }])).rejects.toMatchObject({
      code: "invalid",
      details: { column: "host" },
    });
    expect(await readAll({ class: BOX.path })).toEqual([]);
  });

  test("inserting an id that exists changes what is named, keeps the rest and the birth", async () => {
    await objects.createClass(admin, BOX);
    await objects.unrestricted.insert(admin, BOX.path, [
      { host: "h1", size: 1, config: { a: "1", b: "2" }, note: "first" },
    ]);
    const [before] = await objects.unrestricted.get(admin, [{ id: "box:h1" }]);
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1", size: 2, config: { c: "3" } }]);
    const [after] = await objects.unrestricted.get(admin, [{ id: "box:h1" }]);
    expect(after?.values).toEqual({ host: "h1", size: 2, config: { c: "3" }, note: "first" });
    expect(after?.ctimeMs).toBe(before?.ctimeMs);
    expect(await idsOf({ class: BOX.path, where: [{ kind: "equals", column: "config", values: ["a"] }] })).toEqual([]);
    expect(await idsOf({ class: BOX.path, where: [{ kind: "equals", column: "size", values: [2] }] })).toEqual([
      "box:h1",
    ]);
  });

  test("the same object twice in one insert is written in order", async () => {
    await objects.createClass(admin, BOX);
    await objects.unrestricted.insert(admin, BOX.path, [
      { host: "h1", size: 1, note: "n" },
      { host: "h1", size: 2 },
    ]);
    expect(await valuesOf("box:h1")).toEqual({ host: "h1", size: 2, note: "n" });
  });

  test("ids: given whole or bare, joined from keys, digest of keys, made up", async () => {
    const columns = [
      { name: "a", type: "varchar" as const },
      { name: "b", type: "int" as const },
    ];
    await objects.createClass(admin, { path: "/matrix/given", columns, options: { keyMode: "manu" } });
    expect(
      await objects.unrestricted.insert(admin, "/matrix/given", [{ id: "given:1" }, { id: "2" }, { id: "x:3" }]),
    ).toEqual(["given:1", "given:2", "given:x:3"]);
    await expect(objects.unrestricted.insert(admin, "/matrix/given", [{ a: "x" }])).rejects.toMatchObject({
      code: "invalid",
    });
    await expect(objects.unrestricted.insert(admin, "/matrix/given", [{ id: "\ud800" }])).rejects.toThrow(
      "has a lone surrogate",
    );
    await objects.unrestricted.insert(admin, "/matrix/given", [{ id: "\ufffd" }]);
    expect(await objects.unrestricted.get(admin, [{ id: "given:\ufffd" }, { id: "given:\ud800" }])).toMatchObject([
      { id: "given:\ufffd" },
      undefined,
    ]);
    await objects.createClass(admin, { path: "/matrix/joined", columns, keys: ["a", "b"] });
    expect(await objects.unrestricted.insert(admin, "/matrix/joined", [{ a: "x:y", b: "05" }])).toEqual([
      "joined:x\\:y:5",
    ]);
    await objects.createClass(admin, { path: "/matrix/digest", columns, keys: ["a"], options: { keyMode: "md5" } });
    expect(await objects.unrestricted.insert(admin, "/matrix/digest", [{ a: "abc" }])).toEqual([
      "digest:900150983cd24fb0d6963f7d28e17f72",
    ]);
    await objects.createClass(admin, { path: "/matrix/made", columns });
    const made = await objects.unrestricted.insert(admin, "/matrix/made", [{ a: "x" }, { a: "x" }]);
    expect(new Set(made).size).toBe(2);
    expect(made[0]).toMatch(/^made:[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/);
    await expect(
      objects.createClass(admin, { path: "/matrix/bad", columns, options: { keyMode: "md5" } }),
    ).rejects.toMatchObject({ code: "invalid" });
  });

  test("update sets, adds and takes; an object that is not there is not made", async () => {
    await objects.createClass(admin, BOX);
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1", tags: ["a"], config: { a: "1" }, ports: [1] }]);
    const done = await objects.unrestricted.update(admin, { id: "box:h1" }, [
      { column: "tags", operation: "add", value: "b" },
      { column: "config", operation: "add", value: { b: "2" } },
      { column: "config", operation: "take", value: '{"a":""}' },
      { column: "ports", operation: "take", value: [1] },
      { column: "size", operation: "set", value: 7 },
    ]);
    expect(done).toBe(true);
    expect(await valuesOf("box:h1")).toEqual({ host: "h1", tags: ["a", "b"], config: { b: "2" }, ports: [], size: 7 });
    expect(await idsOf({ class: BOX.path, where: [{ kind: "equals", column: "tags", values: ["b"] }] })).toEqual([
      "box:h1",
    ]);
    expect(await idsOf({ class: BOX.path, where: [{ kind: "equals", column: "config", values: ["a"] }] })).toEqual([]);
    await objects.unrestricted.update(admin, { id: "box:h1" }, [
      { column: "tags", operation: "set", value: undefined },
    ]);
    expect((await valuesOf("box:h1"))?.tags).toBeUndefined();
    expect(
      await objects.unrestricted.update(admin, { id: "box:h9" }, [{ column: "size", operation: "set", value: 1 }]),
    ).toBe(false);
    expect(await objects.unrestricted.update(admin, { id: "nowhere:1" }, [])).toBe(false);
  });

  test("key columns that make the id are not changed", async () => {
    await objects.createClass(admin, BOX);
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1" }]);
    await expect(
      objects.unrestricted.update(admin, { id: "box:h1" }, [{ column: "host", operation: "set", value: "h2" }]),
    ).rejects.toMatchObject({ code: "invalid" });
    expect(
      await objects.unrestricted.update(admin, { id: "box:h1" }, [{ column: "host", operation: "set", value: "h1" }]),
    ).toBe(true);
  });

  test("a removed object is gone, counted once, and comes back only by an insert", async () => {
    await objects.createClass(admin, BOX);
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1", note: "old" }, { host: "h2" }]);
    expect(await objects.unrestricted.remove(admin, [{ id: "box:h1" }, { id: "box:h9" }])).toBe(1);
    expect(
      await objects.unrestricted.update(admin, { id: "box:h1" }, [{ column: "size", operation: "set", value: 1 }]),
    ).toBe(false);
    expect(await idsOf({ class: BOX.path })).toEqual(["box:h2"]);
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1" }]);
    expect(await valuesOf("box:h1")).toEqual({ host: "h1" });
  });

  test("of many writers on one object no attribute, element or entry is lost", async () => {
    await objects.createClass(admin, BOX);
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1" }]);
    const second = newService();
    const writes = Array.from({ length: 40 }, (_, at) =>
      (at % 2 === 0 ? objects : second).unrestricted.update(admin, { id: "box:h1" }, [
        { column: "tags", operation: "add", value: [`t${at}`] },
        { column: "config", operation: "add", value: { [`k${at}`]: String(at) } },
        { column: "ports", operation: "add", value: [at] },
      ]),
    );
    expect(await Promise.all(writes)).toEqual(writes.map(() => true));
    const values = await valuesOf("box:h1");
    expect(values?.tags).toHaveLength(40);
    expect(values?.ports).toHaveLength(40);
    expect(Object.keys((values?.config ?? {}) as Row)).toHaveLength(40);
    for (const at of [0, 17, 39])
      expect(await idsOf({ class: BOX.path, where: [{ kind: "equals", column: "ports", values: [at] }] })).toEqual([
        "box:h1",
      ]);
    await second.close();
  });

  test("an attribute named like an edge type makes edges, another set replaces them, empty text clears them", async () => {
    await objects.createClass(admin, BOX);
    await objects.createEdgeType(admin, { name: "contain", remedy: "contains" });
    await objects.unrestricted.insert(admin, BOX.path, [
      { host: "h1" },
      { host: "h2" },
      { host: "h3", contain: ["box:h1", "box:h2"] },
    ]);
    expect(await edgesOf("h3")).toEqual(["h1", "h2"]);
    await objects.unrestricted.update(admin, { id: "box:h3" }, [
      { column: "contain", operation: "add", value: "box:h3" },
    ]);
    await objects.unrestricted.update(admin, { id: "box:h3" }, [
      { column: "contain", operation: "take", value: "box:h1" },
    ]);
    expect(await edgesOf("h3")).toEqual(["h2", "h3"]);
    await objects.unrestricted.update(admin, { id: "box:h3" }, [{ column: "contain", operation: "set", value: "" }]);
    expect(await edgesOf("h3")).toEqual([]);
    const one = { column: "contain", operation: "add", value: "box:h1" } as const;
    await objects.unrestricted.update(admin, { id: "box:h3" }, [
      one,
      { column: "contain", operation: "set", value: "box:h2" },
    ]);
    expect(await edgesOf("h3")).toEqual(["h2"]);
    await expect(
      objects.unrestricted.insert(admin, BOX.path, [{ host: "h4", contain: "nowhere:1" }]),
    ).rejects.toMatchObject({
      code: "invalid",
    });
  });

  async function edgesOf(key: string): Promise<string[]> {
    const cid = (await objects.catalog(admin)).get(BOX.path)?.cid ?? 0;
    const { items } = await (await engine.tenant("matrix")).objects.edges({ cid, id: key }, "out", { limit: 100 });
    return items.map((edge) => edge.to.id).sort();
  }

  test("a class with versions keeps each one, and the removal", async () => {
    const view = await objects.createClass(admin, { ...BOX, options: { version: true } });
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1", size: 1 }]);
    await objects.unrestricted.update(admin, { id: "box:h1" }, [{ column: "size", operation: "set", value: 2 }]);
    await objects.unrestricted.remove(admin, [{ id: "box:h1" }]);
    expect(await versionsOf(view.cid)).toEqual([
      { dead: true },
      { values: [expect.any(Number), "h1", expect.any(Number), 2], made: expect.any(Number) as number },
      expect.anything(),
    ]);
    await objects.unrestricted.remove(admin, [{ id: "box:h1" }], { withVersions: true });
    expect(await versionsOf(view.cid)).toEqual([]);
  });

  async function versionsOf(cid: number): Promise<unknown[]> {
    const { items } = await (await engine.tenant("matrix")).objects.history({ cid, id: "h1" }, {}, { limit: 100 });
    return items.map((version) => decodeStored<unknown>(version.value));
  }

  test("a write at a time of its own does not win over what is newer", async () => {
    await objects.createClass(admin, BOX);
    const atMs = Date.UTC(2025, 0, 1);
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1", size: 1 }], { atMs });
    expect(await objects.unrestricted.get(admin, [{ id: "box:h1" }])).toMatchObject([{ vtimeMs: atMs, ctimeMs: atMs }]);
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1", size: 2 }]);
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1", size: 1, note: "late" }], { atMs: atMs + 1 });
    expect(await valuesOf("box:h1")).toEqual({ host: "h1", size: 2, note: "late" });
    expect(await idsOf({ class: BOX.path, where: [{ kind: "equals", column: "size", values: [2] }] })).toEqual([
      "box:h1",
    ]);
  });

  test.each([
    [1, 2],
    [2, 1],
  ])("of two writes at one time, %i and then %i, the one that stays is found by its value", async (first, second) => {
    await objects.createClass(admin, BOX);
    const atMs = Date.UTC(2025, 0, 1);
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1", size: first }], { atMs });
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1", size: second }], { atMs });
    const { size } = (await valuesOf("box:h1")) as { readonly size: number };
    expect([1, 2]).toContain(size);
    const where = [{ kind: "equals" as const, column: "size", values: [size] }];
    expect((await objects.unrestricted.explain(admin, { class: BOX.path, subtree: false, where })).used).toEqual(where);
    expect(await idsOf({ class: BOX.path, where })).toEqual(["box:h1"]);
  });

  // Where a test cannot move the clock, the contract of the object store lets real time pass.
  test.each(onCluster ? [] : [60])("objects and records of a class with a ttl of %i s expire", async (ttlSeconds) => {
    const clock = new TestClock(realClock.nowMs());
    await using own = await openTestEngine({ clock });
    const service = new ObjectService({ stores: own, runtime: testRuntime(clock) });
    await service.createClass(admin, { ...BOX, options: { ttlSeconds } });
    await service.createClass(admin, {
      path: "/matrix/log",
      kind: "record",
      columns: [{ name: "x", type: "int" }],
      options: { ttlSeconds },
    });
    const [id = ""] = await service.unrestricted.insert(admin, "/matrix/log", [{ x: 1 }]);
    await service.unrestricted.insert(admin, BOX.path, [{ host: "h1" }]);
    expect(await service.unrestricted.get(admin, [{ id: "box:h1" }, { id }])).toMatchObject([{ id: "box:h1" }, { id }]);
    clock.advance(61_000);
    expect(await service.unrestricted.get(admin, [{ id: "box:h1" }, { id }])).toEqual([undefined, undefined]);
    await service.close();
  });

  test("what was written is told to listeners, without sealed columns", async () => {
    objects.registerSystemClass({
      path: "/system/door",
      columns: [
        { name: "name", type: "varchar", meaning: "Name" },
        { name: "pin", type: "varchar", sealed: true },
      ],
      keys: ["name"],
      guard: { reading: { permission: "objects:read" as const } },
    });
    const heard: unknown[] = [];
    const stop = objects.unrestricted.onChange((events) =>
      heard.push(...events.map(({ tenant, id, action, fields }) => ({ tenant, id, action, fields }))),
    );
    await objects.unrestricted.insert(admin, "/matrix/system/door", [{ name: "front", pin: "1234" }]);
    await objects.unrestricted.update(admin, { id: "door:front" }, [
      { column: "pin", operation: "set", value: "9" },
      { column: "tags", operation: "add", value: "t" },
    ]);
    await objects.unrestricted.remove(admin, [{ id: "door:front" }]);
    stop();
    await objects.unrestricted.insert(admin, "/matrix/system/door", [{ name: "back" }]);
    expect(heard).toEqual([
      { tenant: "matrix", id: "door:front", action: "INSERT", fields: { name: "front" } },
      { tenant: "matrix", id: "door:front", action: "UPDATE", fields: { tags: ["t"] } },
      { tenant: "matrix", id: "door:front", action: "DELETE", fields: {} },
    ]);
  });
});
