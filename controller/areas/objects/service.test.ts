import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { OBJECT_PAGE_EXAMINED_MAX, RANGE_SLOTS } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import { realClock, seededRandom } from "../../../test/helpers/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engine.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../test/helpers/runtime.ts";
import { decodeStored } from "../../store/format.ts";
import { ObjectService, type ClassSpec, type ObjectRow, type ReadRequest } from "./index.ts";

const admin = testPrincipal();
const viewer = testPrincipal("viewer");
const other = testPrincipal("administrator", "second");

const BOX: ClassSpec = {
  path: "/matrix/ent/box",
  columns: [
    { name: "host", type: "varchar", title: "Host" },
    { name: "size", type: "bigint" },
    { name: "config", type: "map", elements: ["varchar", "varchar"] },
    { name: "ports", type: "set", elements: ["int"] },
    { name: "note", type: "text" },
  ],
  keys: ["host"],
  indexes: ["host", "size", "ports", "config"],
};

let engine: TestEngine;
let objects: ObjectService;
let seed = 1;

beforeEach(async () => {
  engine = await openTestEngine();
  objects = newService();
});

afterEach(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

function newService(): ObjectService {
  return new ObjectService({ stores: engine, runtime: { ...testRuntime(realClock), random: seededRandom(seed++) } });
}

async function readAll(
  request: Partial<ReadRequest> & { readonly class: string },
  service = objects,
): Promise<ObjectRow[]> {
  const rows: ObjectRow[] = [];
  for await (const page of service.read(admin, { subtree: false, ...request })) rows.push(...page);
  return rows;
}

async function idsOf(request: Partial<ReadRequest> & { readonly class: string }, service = objects): Promise<string[]> {
  return (await readAll(request, service)).map((row) => row.id).sort();
}

async function valuesOf(id: string, service = objects): Promise<Row | undefined> {
  const [row] = await service.get(admin, [{ id }]);
  return row?.values;
}

test("objects that are read by their ids come in pages of a few, in the order of the ids", async () => {
  await objects.createClass(admin, BOX);
  const names = Array.from({ length: 2 * OBJECT_PAGE_EXAMINED_MAX + 1 }, (_, at) => `h${at}`);
  await objects.insert(
    admin,
    BOX.path,
    names.map((host) => ({ host })),
  );
  const ids = names.map((name) => `box:${name}`);
  const pages: (readonly string[])[] = [];
  for await (const page of objects.read(admin, { class: BOX.path, subtree: false, ids }))
    pages.push(page.map(({ id }) => id));
  expect(pages.flat()).toEqual(ids);
  expect(pages.map(({ length }) => length)).toEqual([OBJECT_PAGE_EXAMINED_MAX, OBJECT_PAGE_EXAMINED_MAX, 1]);
});

describe("classes", () => {
  test("a new tenant has its root class, and parents are made where they are missing", async () => {
    await objects.createClass(admin, BOX);
    const catalog = await objects.catalog(admin);
    expect(catalog.get("/matrix")).toMatchObject({ cid: 1, parent: undefined });
    expect(catalog.get("/matrix/ent")).toMatchObject({ kind: "entity", keys: [] });
    expect(catalog.tree("/matrix").map((view) => view.path)).toEqual(["/matrix", "/matrix/ent", "/matrix/ent/box"]);
    expect(catalog.children("/matrix").map((view) => view.path)).toEqual(["/matrix/ent"]);
  });

  test("a subclass inherits columns, keys and indexes and may name them again", async () => {
    await objects.createClass(admin, BOX);
    const view = await objects.createClass(admin, {
      path: "/matrix/ent/box/big",
      columns: [
        { name: "host", type: "varchar" },
        { name: "weight", type: "double" },
      ],
      keys: ["host"],
      indexes: ["host", "weight"],
    });
    expect(view.columns.map((column) => column.name)).toEqual([
      "tags",
      "host",
      "size",
      "config",
      "ports",
      "note",
      "weight",
    ]);
    expect(view.column("host")).toMatchObject({ definedBy: "/matrix/ent/box", indexed: true, key: true });
    expect(view.keys).toEqual(["host"]);
    await expect(
      objects.createClass(admin, { path: "/matrix/ent/box/odd", columns: [{ name: "size", type: "varchar" }] }),
    ).rejects.toMatchObject({
      code: "conflict",
    });
  });

  test("a column added to a class is in its subclasses at once, a dropped one is gone", async () => {
    await objects.createClass(admin, BOX);
    await objects.createClass(admin, { path: "/matrix/ent/box/big", columns: [] });
    await objects.alterClass(admin, "/matrix/ent/box", {
      kind: "add column",
      column: { name: "colour", type: "varchar" },
    });
    expect((await objects.catalog(admin)).get("/matrix/ent/box/big")?.column("colour")).toBeDefined();
    await objects.alterClass(admin, "/matrix/ent/box", { kind: "drop column", name: "colour" });
    expect((await objects.catalog(admin)).get("/matrix/ent/box/big")?.column("colour")).toBeUndefined();
    await expect(
      objects.alterClass(admin, "/matrix/ent/box", { kind: "drop column", name: "host" }),
    ).rejects.toMatchObject({ code: "conflict" });
  });

  test("an index added to a class with objects is not used before it is complete, and the answer is right", async () => {
    await objects.createClass(admin, BOX);
    await objects.insert(admin, BOX.path, [{ host: "h1", note: "red" }]);
    await objects.alterClass(admin, BOX.path, { kind: "add index", name: "note" });
    const where = [{ kind: "equals" as const, column: "note", values: ["red"] }];
    expect((await objects.explain(admin, { class: BOX.path, subtree: false, where })).steps).toEqual([
      "scan of class /matrix/ent/box",
    ]);
    expect(await idsOf({ class: BOX.path, where })).toEqual(["box:h1"]);
  });

  test("paths outside the tenant's name space, wrong names and too many levels are refused", async () => {
    const create = (path: string) => objects.createClass(admin, { path, columns: [] });
    await expect(create("/second/x")).rejects.toMatchObject({ code: "invalid" });
    await expect(create("/system/class")).rejects.toMatchObject({ code: "invalid" });
    await expect(create("/matrix/a b")).rejects.toMatchObject({ code: "invalid" });
    await expect(create(`/matrix${"/x".repeat(20)}`)).rejects.toMatchObject({ code: "too_large" });
    await expect(
      objects.createClass(admin, { path: "/matrix/x", columns: [{ name: "constructor", type: "int" }] }),
    ).rejects.toMatchObject({ code: "invalid" });
  });

  test("too many columns are refused by the name of the limit, and nothing is made", async () => {
    const columns = Array.from({ length: 500 }, (_, at) => ({ name: `c${at}`, type: "int" as const }));
    await expect(objects.createClass(admin, { path: "/matrix/wide", columns })).rejects.toMatchObject({
      code: "too_large",
      details: { limit: "COLUMNS_PER_CLASS_MAX" },
    });
    expect((await objects.catalog(admin)).get("/matrix/wide")).toBeUndefined();
    await objects.createClass(admin, { path: "/matrix/wide", columns: columns.slice(1) });
  });

  test("options are set one by one, and what the store needs no hint for is kept", async () => {
    await objects.createClass(admin, {
      ...BOX,
      options: { ttlSeconds: 60, alias: "box", hints: { partition: "day" } },
    });
    await objects.alterClass(admin, BOX.path, { kind: "set options", options: { ttlSeconds: -1, remedy: "a box" } });
    expect((await objects.catalog(admin)).get(BOX.path)?.options).toEqual({
      keyMode: "manu",
      ttlSeconds: undefined,
      version: false,
      autosearch: false,
      alias: "box",
      nickname: undefined,
      remedy: "a box",
      hints: { partition: "day" },
    });
    await expect(
      objects.alterClass(admin, BOX.path, { kind: "set options", options: { ttlSeconds: -5 } }),
    ).rejects.toMatchObject({ code: "invalid" });
  });

  test("a class is dropped only without objects, versions and subclasses", async () => {
    await objects.createClass(admin, { ...BOX, options: { version: true } });
    await expect(objects.dropClass(admin, "/matrix/ent")).rejects.toMatchObject({ code: "conflict" });
    await objects.insert(admin, BOX.path, [{ host: "h1" }]);
    const refusal = { code: "conflict", message: "[Valid]: Class Has Data or Version Data, Can't Drop." };
    await expect(objects.dropClass(admin, BOX.path)).rejects.toMatchObject(refusal);
    await objects.remove(admin, [{ id: "box:h1" }]);
    await expect(objects.dropClass(admin, BOX.path)).rejects.toMatchObject(refusal);
    await objects.remove(admin, [{ id: "box:h1" }], { withVersions: true });
    await objects.dropClass(admin, BOX.path);
    expect((await objects.catalog(admin)).get(BOX.path)).toBeUndefined();
    await objects.dropClass(admin, BOX.path, { ifExists: true });
  });

  test("creating twice is a conflict unless asked for, and a class made anew has nothing of the old one", async () => {
    const first = await objects.createClass(admin, BOX);
    await expect(objects.createClass(admin, BOX)).rejects.toMatchObject({ code: "conflict" });
    expect((await objects.createClass(admin, BOX, { ifNotExists: true })).cid).toBe(first.cid);
    await objects.dropClass(admin, BOX.path);
    const second = await objects.createClass(admin, BOX);
    expect(second.cid).not.toBe(first.cid);
    expect(second.column("host")?.number).not.toBe(first.column("host")?.number);
  });

  test("what one controller defines the other one sees, and numbers are never given twice", async () => {
    const second = newService();
    const paths = Array.from({ length: 20 }, (_, at) => `/matrix/c${at}`);
    await Promise.all(
      paths.map((path, at) =>
        (at % 2 === 0 ? objects : second).createClass(admin, { path, columns: [{ name: "x", type: "int" }] }),
      ),
    );
    await objects.createClass(admin, { path: "/matrix/last", columns: [] });
    await second.createClass(admin, { path: "/matrix/last2", columns: [] });
    const catalog = await second.catalog(admin);
    const cids = catalog.tree("/").map((view) => view.cid);
    expect(new Set(cids).size).toBe(cids.length);
    const numbers = paths.map((path) => catalog.get(path)?.column("x")?.number);
    expect(new Set(numbers).size).toBe(20);
    await second.close();
  });

  test("system classes are made in every tenant, extended when they grow, and closed to definitions", async () => {
    const definition = {
      path: "/system/thing",
      columns: [{ name: "name", type: "varchar" as const }],
      keys: ["name"],
      indexes: ["name"],
      guard: { reading: { permission: "objects:read" as const } },
    };
    objects.registerSystemClass(definition);
    expect((await objects.catalog(admin)).get("/matrix/system/thing")).toMatchObject({
      system: true,
      guard: { reading: { permission: "objects:read" as const } },
    });
    expect((await objects.catalog(other)).get("/second/system/thing")).toMatchObject({ system: true });
    const later = newService();
    later.registerSystemClass({
      ...definition,
      columns: [...definition.columns, { name: "secret", type: "varchar", sealed: true }],
      indexes: ["name", "secret"],
    });
    const view = (await later.catalog(admin)).get("/matrix/system/thing");
    expect(view?.column("secret")).toMatchObject({ sealed: true, indexed: true });
    await expect(later.dropClass(admin, "/matrix/system/thing")).rejects.toMatchObject({ code: "denied" });
    await expect(
      later.alterClass(admin, "/matrix/system/thing", { kind: "drop column", name: "name" }),
    ).rejects.toMatchObject({ code: "denied" });
    await expect(later.createClass(admin, { path: "/matrix/system/thing/sub", columns: [] })).rejects.toMatchObject({
      code: "denied",
    });
    await later.close();
  });

  test("a provided class answers its owner's rows and takes none", async () => {
    const provide = async function* () {
      yield await Promise.resolve([
        { id: "beat:1", class: "/matrix/system/beat", name: "one" },
        { id: "beat:2", class: "/matrix/system/beat", name: "two" },
      ]);
    };
    objects.registerSystemClass({
      path: "/system/beat",
      columns: [{ name: "name", type: "varchar" }],
      guard: { reading: { permission: "objects:read" as const } },
      provide,
    });
    expect(await readAll({ class: "/matrix/system", subtree: true })).toMatchObject([
      { id: "beat:1", values: { name: "one" } },
      { id: "beat:2", values: { name: "two" } },
    ]);
    expect(await readAll({ class: "/matrix", subtree: true, ids: ["beat:2", "beat:3"] })).toMatchObject([
      { id: "beat:2" },
    ]);
    await expect(objects.insert(admin, "/matrix/system/beat", [{ name: "two" }])).rejects.toMatchObject({
      code: "unsupported",
    });
  });
});

describe("rights", () => {
  test("a viewer reads, and neither writes nor defines", async () => {
    await objects.createClass(admin, BOX);
    await objects.insert(admin, BOX.path, [{ host: "h1" }]);
    const rows: ObjectRow[] = [];
    for await (const page of objects.read(viewer, { class: BOX.path, subtree: false })) rows.push(...page);
    expect(rows).toHaveLength(1);
    await expect(objects.insert(viewer, BOX.path, [{ host: "h2" }])).rejects.toMatchObject({ code: "denied" });
    await expect(objects.update(viewer, { id: "box:h1" }, [])).rejects.toMatchObject({ code: "denied" });
    await expect(objects.remove(viewer, [{ id: "box:h1" }])).rejects.toMatchObject({ code: "denied" });
    await expect(objects.createClass(viewer, { path: "/matrix/v", columns: [] })).rejects.toMatchObject({
      code: "denied",
    });
    await expect(objects.dropClass(viewer, BOX.path)).rejects.toMatchObject({ code: "denied" });
  });

  test("a class the principal may not read is left out of its tree, and refused by name", async () => {
    await objects.createClass(admin, BOX);
    await objects.createClass(admin, {
      path: "/matrix/ent/safe",
      columns: [{ name: "host", type: "varchar" }],
      keys: ["host"],
    });
    await objects.insert(admin, BOX.path, [{ host: "h1" }]);
    await objects.insert(admin, "/matrix/ent/safe", [{ host: "s1" }]);
    const partly = { ...viewer, data: [...viewer.data, { class: "/matrix/ent/safe", access: "none" as const }] };
    const ids: string[] = [];
    for await (const page of objects.read(partly, { class: "/matrix/ent", subtree: true }))
      ids.push(...page.map((row) => row.id));
    expect(ids).toEqual(["box:h1"]);
    expect(await objects.get(partly, [{ id: "safe:s1" }])).toEqual([undefined]);
    await expect(objects.explain(partly, { class: "/matrix/ent/safe", subtree: false })).rejects.toMatchObject({
      code: "denied",
    });
  });

  test("tenants see nothing of each other", async () => {
    await objects.createClass(admin, BOX);
    await objects.insert(admin, BOX.path, [{ host: "h1" }]);
    expect((await objects.catalog(other)).get(BOX.path)).toBeUndefined();
    expect(await objects.get(other, [{ id: "box:h1" }])).toEqual([undefined]);
    await objects.createClass(other, { ...BOX, path: "/second/ent/box" });
    await objects.insert(other, "/second/ent/box", [{ host: "h1", note: "theirs" }]);
    expect(await valuesOf("box:h1")).toEqual({ host: "h1" });
  });
});

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
    expect(await objects.insert(admin, BOX.path, [row])).toEqual(["box:h1"]);
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
    await expect(objects.insert(admin, BOX.path, [{ host: "h1" }, { host: "h2", size: "abc" }])).rejects.toMatchObject({
      code: "invalid",
      message: '[Format] column size: "abc" is no bigint.',
      details: { column: "size", row: 1 },
    });
    await expect(objects.insert(admin, BOX.path, [{ host: "h1", nothing: 1 }])).rejects.toMatchObject({
      code: "not_found",
    });
    await expect(objects.insert(admin, BOX.path, [{ note: "no key" }])).rejects.toMatchObject({
      code: "invalid",
      details: { column: "host" },
    });
    expect(await readAll({ class: BOX.path })).toEqual([]);
  });

  test("inserting an id that exists changes what is named, keeps the rest and the birth", async () => {
    await objects.createClass(admin, BOX);
    await objects.insert(admin, BOX.path, [{ host: "h1", size: 1, config: { a: "1", b: "2" }, note: "first" }]);
    const [before] = await objects.get(admin, [{ id: "box:h1" }]);
    await objects.insert(admin, BOX.path, [{ host: "h1", size: 2, config: { c: "3" } }]);
    const [after] = await objects.get(admin, [{ id: "box:h1" }]);
    expect(after?.values).toEqual({ host: "h1", size: 2, config: { c: "3" }, note: "first" });
    expect(after?.ctimeMs).toBe(before?.ctimeMs);
    expect(await idsOf({ class: BOX.path, where: [{ kind: "equals", column: "config", values: ["a"] }] })).toEqual([]);
    expect(await idsOf({ class: BOX.path, where: [{ kind: "equals", column: "size", values: [2] }] })).toEqual([
      "box:h1",
    ]);
  });

  test("the same object twice in one insert is written in order", async () => {
    await objects.createClass(admin, BOX);
    await objects.insert(admin, BOX.path, [
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
    expect(await objects.insert(admin, "/matrix/given", [{ id: "given:1" }, { id: "2" }, { id: "x:3" }])).toEqual([
      "given:1",
      "given:2",
      "given:x:3",
    ]);
    await expect(objects.insert(admin, "/matrix/given", [{ a: "x" }])).rejects.toMatchObject({ code: "invalid" });
    await expect(objects.insert(admin, "/matrix/given", [{ id: "\ud800" }])).rejects.toThrow("has a lone surrogate");
    await objects.insert(admin, "/matrix/given", [{ id: "\ufffd" }]);
    expect(await objects.get(admin, [{ id: "given:\ufffd" }, { id: "given:\ud800" }])).toMatchObject([
      { id: "given:\ufffd" },
      undefined,
    ]);
    await objects.createClass(admin, { path: "/matrix/joined", columns, keys: ["a", "b"] });
    expect(await objects.insert(admin, "/matrix/joined", [{ a: "x:y", b: "05" }])).toEqual(["joined:x\\:y:5"]);
    await objects.createClass(admin, { path: "/matrix/digest", columns, keys: ["a"], options: { keyMode: "md5" } });
    expect(await objects.insert(admin, "/matrix/digest", [{ a: "abc" }])).toEqual([
      "digest:900150983cd24fb0d6963f7d28e17f72",
    ]);
    await objects.createClass(admin, { path: "/matrix/made", columns });
    const made = await objects.insert(admin, "/matrix/made", [{ a: "x" }, { a: "x" }]);
    expect(new Set(made).size).toBe(2);
    expect(made[0]).toMatch(/^made:[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/);
    await expect(
      objects.createClass(admin, { path: "/matrix/bad", columns, options: { keyMode: "md5" } }),
    ).rejects.toMatchObject({ code: "invalid" });
  });

  test("update sets, adds and takes; an object that is not there is not made", async () => {
    await objects.createClass(admin, BOX);
    await objects.insert(admin, BOX.path, [{ host: "h1", tags: ["a"], config: { a: "1" }, ports: [1] }]);
    const done = await objects.update(admin, { id: "box:h1" }, [
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
    await objects.update(admin, { id: "box:h1" }, [{ column: "tags", operation: "set", value: undefined }]);
    expect((await valuesOf("box:h1"))?.tags).toBeUndefined();
    expect(await objects.update(admin, { id: "box:h9" }, [{ column: "size", operation: "set", value: 1 }])).toBe(false);
    expect(await objects.update(admin, { id: "nowhere:1" }, [])).toBe(false);
  });

  test("key columns that make the id are not changed", async () => {
    await objects.createClass(admin, BOX);
    await objects.insert(admin, BOX.path, [{ host: "h1" }]);
    await expect(
      objects.update(admin, { id: "box:h1" }, [{ column: "host", operation: "set", value: "h2" }]),
    ).rejects.toMatchObject({ code: "invalid" });
    expect(await objects.update(admin, { id: "box:h1" }, [{ column: "host", operation: "set", value: "h1" }])).toBe(
      true,
    );
  });

  test("a removed object is gone, counted once, and comes back only by an insert", async () => {
    await objects.createClass(admin, BOX);
    await objects.insert(admin, BOX.path, [{ host: "h1", note: "old" }, { host: "h2" }]);
    expect(await objects.remove(admin, [{ id: "box:h1" }, { id: "box:h9" }])).toBe(1);
    expect(await objects.update(admin, { id: "box:h1" }, [{ column: "size", operation: "set", value: 1 }])).toBe(false);
    expect(await idsOf({ class: BOX.path })).toEqual(["box:h2"]);
    await objects.insert(admin, BOX.path, [{ host: "h1" }]);
    expect(await valuesOf("box:h1")).toEqual({ host: "h1" });
  });

  test("of many writers on one object no attribute, element or entry is lost", async () => {
    await objects.createClass(admin, BOX);
    await objects.insert(admin, BOX.path, [{ host: "h1" }]);
    const second = newService();
    const writes = Array.from({ length: 40 }, (_, at) =>
      (at % 2 === 0 ? objects : second).update(admin, { id: "box:h1" }, [
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
    await objects.insert(admin, BOX.path, [
      { host: "h1" },
      { host: "h2" },
      { host: "h3", contain: ["box:h1", "box:h2"] },
    ]);
    expect(await edgesOf("h3")).toEqual(["h1", "h2"]);
    await objects.update(admin, { id: "box:h3" }, [{ column: "contain", operation: "add", value: "box:h3" }]);
    await objects.update(admin, { id: "box:h3" }, [{ column: "contain", operation: "take", value: "box:h1" }]);
    expect(await edgesOf("h3")).toEqual(["h2", "h3"]);
    await objects.update(admin, { id: "box:h3" }, [{ column: "contain", operation: "set", value: "" }]);
    expect(await edgesOf("h3")).toEqual([]);
    const one = { column: "contain", operation: "add", value: "box:h1" } as const;
    await objects.update(admin, { id: "box:h3" }, [one, { column: "contain", operation: "set", value: "box:h2" }]);
    expect(await edgesOf("h3")).toEqual(["h2"]);
    await expect(objects.insert(admin, BOX.path, [{ host: "h4", contain: "nowhere:1" }])).rejects.toMatchObject({
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
    await objects.insert(admin, BOX.path, [{ host: "h1", size: 1 }]);
    await objects.update(admin, { id: "box:h1" }, [{ column: "size", operation: "set", value: 2 }]);
    await objects.remove(admin, [{ id: "box:h1" }]);
    expect(await versionsOf(view.cid)).toEqual([
      { dead: true },
      { values: [expect.any(Number), "h1", expect.any(Number), 2], made: expect.any(Number) as number },
      expect.anything(),
    ]);
    await objects.remove(admin, [{ id: "box:h1" }], { withVersions: true });
    expect(await versionsOf(view.cid)).toEqual([]);
  });

  async function versionsOf(cid: number): Promise<unknown[]> {
    const { items } = await (await engine.tenant("matrix")).objects.history({ cid, id: "h1" }, {}, { limit: 100 });
    return items.map((version) => decodeStored<unknown>(version.value));
  }

  test("a write at a time of its own does not win over what is newer", async () => {
    await objects.createClass(admin, BOX);
    const atMs = Date.UTC(2025, 0, 1);
    await objects.insert(admin, BOX.path, [{ host: "h1", size: 1 }], { atMs });
    expect(await objects.get(admin, [{ id: "box:h1" }])).toMatchObject([{ vtimeMs: atMs, ctimeMs: atMs }]);
    await objects.insert(admin, BOX.path, [{ host: "h1", size: 2 }]);
    await objects.insert(admin, BOX.path, [{ host: "h1", size: 1, note: "late" }], { atMs: atMs + 1 });
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
    await objects.insert(admin, BOX.path, [{ host: "h1", size: first }], { atMs });
    await objects.insert(admin, BOX.path, [{ host: "h1", size: second }], { atMs });
    const { size } = (await valuesOf("box:h1")) as { readonly size: number };
    expect([1, 2]).toContain(size);
    const where = [{ kind: "equals" as const, column: "size", values: [size] }];
    expect((await objects.explain(admin, { class: BOX.path, subtree: false, where })).used).toEqual(where);
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
    const [id = ""] = await service.insert(admin, "/matrix/log", [{ x: 1 }]);
    await service.insert(admin, BOX.path, [{ host: "h1" }]);
    expect(await service.get(admin, [{ id: "box:h1" }, { id }])).toMatchObject([{ id: "box:h1" }, { id }]);
    clock.advance(61_000);
    expect(await service.get(admin, [{ id: "box:h1" }, { id }])).toEqual([undefined, undefined]);
    await service.close();
  });

  test("what was written is told to listeners, without sealed columns", async () => {
    objects.registerSystemClass({
      path: "/system/door",
      columns: [
        { name: "name", type: "varchar" },
        { name: "pin", type: "varchar", sealed: true },
      ],
      keys: ["name"],
      guard: { reading: { permission: "objects:read" as const } },
    });
    const heard: unknown[] = [];
    const stop = objects.onChange((events) =>
      heard.push(...events.map(({ tenant, id, action, fields }) => ({ tenant, id, action, fields }))),
    );
    await objects.insert(admin, "/matrix/system/door", [{ name: "front", pin: "1234" }]);
    await objects.update(admin, { id: "door:front" }, [
      { column: "pin", operation: "set", value: "9" },
      { column: "tags", operation: "add", value: "t" },
    ]);
    await objects.remove(admin, [{ id: "door:front" }]);
    stop();
    await objects.insert(admin, "/matrix/system/door", [{ name: "back" }]);
    expect(heard).toEqual([
      { tenant: "matrix", id: "door:front", action: "INSERT", fields: { name: "front" } },
      { tenant: "matrix", id: "door:front", action: "UPDATE", fields: { tags: ["t"] } },
      { tenant: "matrix", id: "door:front", action: "DELETE", fields: {} },
    ]);
  });
});

describe("reading", () => {
  beforeEach(async () => {
    await objects.createClass(admin, BOX);
    await objects.createClass(admin, {
      path: "/matrix/ent/box/big",
      columns: [{ name: "weight", type: "double" }],
      indexes: ["weight"],
    });
    await objects.createClass(admin, {
      path: "/matrix/ent/rack",
      columns: [{ name: "size", type: "int" }],
      indexes: ["size"],
    });
    await objects.insert(
      admin,
      BOX.path,
      Array.from({ length: 30 }, (_, at) => ({ host: `h${at}`, size: at, ports: [at, at + 1] })),
    );
    await objects.insert(admin, "/matrix/ent/box/big", [
      { host: "b1", size: 5, weight: 1.5 },
      { host: "b2", size: 100, weight: 2.5 },
    ]);
    await objects.insert(admin, "/matrix/ent/rack", [{ id: "r1", size: 5 }, { id: "r2" }]);
  });

  test("a class alone, with its subclasses, and the whole tenant", async () => {
    expect(await readAll({ class: BOX.path })).toHaveLength(30);
    expect(await readAll({ class: BOX.path, subtree: true })).toHaveLength(32);
    expect(await readAll({ class: "/matrix", subtree: true })).toHaveLength(34);
    expect(await readAll({ class: "/", subtree: true })).toHaveLength(34);
    expect(await readAll({ class: "/matrix/ent" })).toEqual([]);
    await expect(readAll({ class: "/matrix/none" })).rejects.toMatchObject({ code: "not_found" });
  });

  test("equality by index over classes whose columns of one name are different ones", async () => {
    const where = [{ kind: "equals" as const, column: "size", values: ["5"] }];
    expect(await idsOf({ class: "/matrix/ent", subtree: true, where })).toEqual(["big:b1", "box:h5", "rack:r1"]);
    expect(await idsOf({ class: BOX.path, where })).toEqual(["box:h5"]);
    const plan = await objects.explain(admin, { class: "/matrix/ent", subtree: true, where });
    expect(plan).toEqual({
      steps: ["index size = 5 in 2 classes of /matrix/ent", "index size = 5 in class /matrix/ent/rack"],
      used: where,
    });
  });

  test("an object that bears several of the values is answered once", async () => {
    const where = [{ kind: "equals" as const, column: "ports", values: [4, 5, 6] }];
    expect(await idsOf({ class: BOX.path, where })).toEqual(["box:h3", "box:h4", "box:h5", "box:h6"]);
    expect(await idsOf({ class: BOX.path, where: [{ kind: "equals", column: "ports", values: [] }] })).toEqual([]);
  });

  test("ranges of numbers, and of the time of the last write", async () => {
    const where = [{ kind: "range" as const, column: "size", from: 28, to: 100 }];
    expect(await idsOf({ class: BOX.path, subtree: true, where })).toEqual(["big:b2", "box:h28", "box:h29"]);
    expect(
      await idsOf({ class: BOX.path, subtree: true, where: [...where, { kind: "range", column: "weight", from: 0 }] }),
    ).toEqual(["big:b2"]);
    expect(await idsOf({ class: BOX.path, where: [{ kind: "range", column: "vtime", to: 1_000 }] })).toEqual([]);
    expect(await readAll({ class: BOX.path, where: [{ kind: "range", column: "vtime", from: 1_000 }] })).toHaveLength(
      30,
    );
  });

  test("sixteen indexes of numbers and times know ranges; that of a further column answers equality, and its ranges are a scan that is told", async () => {
    const path = "/matrix/nums";
    const names = Array.from({ length: RANGE_SLOTS + 1 }, (_, at) => `n${at}`);
    const types = ["int", "timestamp", "double", "bigint"] as const;
    await objects.createClass(admin, {
      path,
      columns: names.map((name, at) => ({ name, type: types[at % types.length]! })),
      indexes: names,
    });
    const rowOf = (value: number): Row => Object.fromEntries(names.map((name, at) => [name, value + at]));
    const [low, high, changed] = await objects.insert(admin, path, [rowOf(100), rowOf(200), rowOf(300)]);
    for (const [at, column] of names.entries())
      await objects.update(admin, { id: changed! }, [{ column, operation: "set", value: 120 + at }]);
    const beyond = names[RANGE_SLOTS]!;
    for (const [at, column] of names.entries()) {
      const where = [{ kind: "range" as const, column, from: 110 + at, to: 250 + at }];
      const { steps, used } = await objects.explain(admin, { class: path, subtree: false, where });
      expect(steps.join()).toContain(
        column === beyond
          ? `scan of class ${path} (each is asked for range ${column} ${110 + at}..${250 + at}: the 16 range slots are taken)`
          : `range ${column} ${110 + at}..${250 + at} in class ${path}`,
      );
      expect(used).toEqual(column === beyond ? [] : where);
      const found = await idsOf({ class: path, where });
      expect(found).toEqual(expect.arrayContaining([high, changed]));
      expect(found.includes(low!)).toBe(column === beyond);
      expect(
        await idsOf({ class: path, where: [{ kind: "equals", column, values: [100 + at] }] }),
        `equality of ${column}`,
      ).toEqual([low]);
    }
  });

  test("ids visit every class with that label, narrowed by the class asked for", async () => {
    await objects.createClass(admin, { path: "/matrix/other/box", columns: [], options: { keyMode: "manu" } });
    await objects.insert(admin, "/matrix/other/box", [{ id: "h1" }]);
    expect(
      (await readAll({ class: "/matrix", subtree: true, ids: ["box:h1", "rack:r1", "box:none"] }))
        .map((row) => row.class.path)
        .sort(),
    ).toEqual(["/matrix/ent/box", "/matrix/ent/rack", "/matrix/other/box"]);
    expect(await readAll({ class: "/matrix/other", subtree: true, ids: ["box:h1"] })).toHaveLength(1);
    const [narrowed] = await objects.get(admin, [{ id: "box:h1", class: "/matrix/other/box" }]);
    expect(narrowed?.class.path).toBe("/matrix/other/box");
  });

  test("words of the full text, in scripts with and without spaces", async () => {
    await objects.createClass(admin, {
      path: "/matrix/doc",
      columns: [{ name: "body", type: "text" }],
      options: { autosearch: true },
    });
    const long = Array.from({ length: 1_500 }, (_, at) => `w${at}`).join(" ");
    const [a, b, c] = await objects.insert(admin, "/matrix/doc", [
      { body: "Disk FULL on db1" },
      { body: "磁盘空间不足" },
      { body: `${long} disk` },
    ]);
    const words = (...given: string[]) => idsOf({ class: "/matrix/doc", where: [{ kind: "words", words: given }] });
    // The third has more words than the index keeps: it may be answered always, and is answered once.
    expect(await words("disk", "full")).toEqual([a, c].sort());
    expect(await words("空间")).toEqual([b, c].sort());
    expect(await words("w3")).toEqual([c]);
    await objects.update(admin, { id: a ?? "" }, [{ column: "body", operation: "set", value: "all clear" }]);
    expect(await words("full")).toEqual([c]);
    expect(await words("clear")).toEqual([a, c].sort());
  });

  test("a read that is stopped ends with an error", async () => {
    const controller = new AbortController();
    controller.abort();
    await expect(readAll({ class: BOX.path, signal: controller.signal })).rejects.toMatchObject({ code: "cancelled" });
  });
});

describe("records", () => {
  const log: ClassSpec = {
    path: "/matrix/log",
    kind: "record",
    columns: [
      { name: "host", type: "varchar" },
      { name: "line", type: "text" },
      { name: "code", type: "int" },
    ],
    indexes: ["host"],
  };

  test("a replay writes the same rows, newest first over the classes of a tree", async () => {
    await objects.createClass(admin, log);
    await objects.createClass(admin, { path: "/matrix/log/web", kind: "record", columns: [] });
    const start = realClock.nowMs() - 60_000;
    const batch = (name: string) =>
      Array.from({ length: 25 }, (_, at) => ({
        values: { host: name, code: at },
        timeMs: start + at * 10,
        identity: `${name}/${at}`,
      }));
    const first = await objects.ingest(admin, log.path, batch("a"));
    await objects.ingest(admin, "/matrix/log/web", batch("b"));
    expect(await objects.ingest(admin, log.path, batch("a"))).toEqual(first);
    const rows = await readAll({ class: log.path, subtree: true, expected: 7 });
    expect(rows).toHaveLength(50);
    const times = rows.map((row) => row.vtimeMs);
    expect(times).toEqual([...times].sort((x, y) => y - x));
    expect(new Set(rows.slice(0, 2).map((row) => row.values.host))).toEqual(new Set(["a", "b"]));
    const where = [
      { kind: "equals" as const, column: "host", values: ["a"] },
      { kind: "range" as const, column: "vtime", from: start + 200, to: start + 220 },
    ];
    expect((await readAll({ class: log.path, subtree: true, where })).map((row) => row.values.code)).toEqual([
      22, 21, 20,
    ]);
  });

  test("a record is read by id, removed, and not updated; its class is dropped when empty", async () => {
    await objects.createClass(admin, log);
    const [id = ""] = await objects.insert(admin, log.path, [{ host: "a", line: "x" }]);
    expect(id).toMatch(/^log:[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(await valuesOf(id)).toEqual({ host: "a", line: "x" });
    expect((await readAll({ class: "/matrix", subtree: true, ids: [id] })).map((row) => row.id)).toEqual([id]);
    await expect(objects.update(admin, { id }, [])).rejects.toMatchObject({ code: "unsupported" });
    await expect(objects.dropClass(admin, log.path)).rejects.toMatchObject({ code: "conflict" });
    expect(await objects.remove(admin, [{ id }, { id }])).toBe(1);
    await objects.dropClass(admin, log.path);
    await expect(objects.createClass(admin, { ...log, keys: ["host"] })).rejects.toMatchObject({ code: "invalid" });
  });

  test("entities of a source are upserts by their keys, or by the source's identity", async () => {
    await objects.createClass(admin, BOX);
    await objects.createClass(admin, { path: "/matrix/free", columns: [{ name: "x", type: "int" }] });
    const record = { values: { host: "h1", size: 3 }, timeMs: realClock.nowMs(), identity: "s/1/0" };
    expect(await objects.ingest(admin, BOX.path, [record])).toEqual(["box:h1"]);
    expect(await objects.ingest(admin, BOX.path, [record])).toEqual(["box:h1"]);
    const free = { ...record, values: { x: 1 } };
    expect(await objects.ingest(admin, "/matrix/free", [free])).toEqual(
      await objects.ingest(admin, "/matrix/free", [free]),
    );
    expect(await readAll({ class: "/matrix", subtree: true })).toHaveLength(2);
  });
});
