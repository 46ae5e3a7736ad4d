import { describe, expect, test } from "vitest";
import {
  admin,
  BOX,
  idsOf,
  newService,
  objects,
  openObjects,
  other,
  readAll,
} from "../../../test/helpers/objects/object-world.ts";

openObjects();

describe("classes", () => {
  test("a new tenant has its root class, and parents are made where they are missing", async () => {
    await objects.createClass(admin, BOX);
    const catalog = await objects.catalog(admin);
    expect(catalog.get("/matrix")).toMatchObject({ cid: 1, parent: undefined });
    expect(catalog.get("/matrix/ent")).toMatchObject({ kind: "entity", keys: [] });
    expect(catalog.tree("/matrix").map((view) => view.path)).toEqual(["/matrix", "/matrix/ent", "/matrix/ent/box"]);
    expect(catalog.children("/matrix").map((view) => view.path)).toEqual(["/matrix/ent"]);
  });

  test("the definitions are at hand once the tenant is open, and as new as those that are waited for", async () => {
    const fresh = newService();
    expect(fresh.catalogNow(admin)).toBeUndefined();
    expect(await fresh.catalog(admin)).toBe(fresh.catalogNow(admin));
    await fresh.createClass(admin, BOX);
    expect(fresh.catalogNow(admin)?.get(BOX.path)).toBeDefined();
    await fresh.close();
    expect(fresh.catalogNow(admin)).toBeUndefined();
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
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1", note: "red" }]);
    await objects.alterClass(admin, BOX.path, { kind: "add index", name: "note" });
    const where = [{ kind: "equals" as const, column: "note", values: ["red"] }];
    expect((await objects.unrestricted.explain(admin, { class: BOX.path, subtree: false, where })).steps).toEqual([
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
    await objects.unrestricted.insert(admin, BOX.path, [{ host: "h1" }]);
    const refusal = { code: "conflict", message: "[Valid]: Class Has Data or Version Data, Can't Drop." };
    await expect(objects.dropClass(admin, BOX.path)).rejects.toMatchObject(refusal);
    await objects.unrestricted.remove(admin, [{ id: "box:h1" }]);
    await expect(objects.dropClass(admin, BOX.path)).rejects.toMatchObject(refusal);
    await objects.unrestricted.remove(admin, [{ id: "box:h1" }], { withVersions: true });
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
      columns: [{ name: "name", type: "varchar" as const, meaning: "Name" }],
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
      columns: [{ name: "name", type: "varchar", meaning: "Name" }],
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
    await expect(objects.unrestricted.insert(admin, "/matrix/system/beat", [{ name: "two" }])).rejects.toMatchObject({
      code: "unsupported",
    });
  });
});
