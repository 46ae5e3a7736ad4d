import { describe, expect, test } from "vitest";
import { OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { ObjectStore } from "../../../store/objects.ts";
import { endEdges, incomingEdges } from "./edges/incoming.ts";
import {
  admin,
  BOX,
  objects,
  other,
  store,
  useWriters,
  held,
  found,
  equal,
  valuesOf,
  removedOnes,
  keyOf,
} from "../../../../test/helpers/objects/write-world.ts";

useWriters();

describe("a removal", () => {
  test("is on record where versions are kept, until it is made with them; and counts each object once", async () => {
    await objects.createClass(admin, { ...BOX, options: { version: true } });
    await objects.unrestricted.insert(admin, BOX.path, [{ name: "a" }, { name: "b" }, { name: "c" }]);
    expect(await objects.unrestricted.remove(admin, [{ id: "box:a" }, { id: "box:b" }, { id: "box:a" }])).toBe(2);
    expect(await removedOnes()).toEqual(["box:a", "box:b"]);
    await objects.alterClass(admin, BOX.path, { kind: "set options", options: { version: false } });
    const all = ["a", "c", "never"].map((name) => ({ id: `box:${name}` }));
    expect(await objects.unrestricted.remove(admin, all, { withVersions: true })).toBe(2);
    expect(await objects.unrestricted.remove(admin, all, { withVersions: true })).toBe(0);
    await objects.alterClass(admin, BOX.path, { kind: "set options", options: { version: true } });
    expect(await removedOnes()).toEqual(["box:b"]);
    for (const id of ["box:a", "box:c"])
      expect((await store.history(await keyOf(id), {}, { limit: 10 })).items).toEqual([]);
  });

  test("stays one though an update of another controller crosses it, and the next object of that name shows none of it", async () => {
    await objects.createClass(admin, { ...BOX, indexes: ["size"] });
    await objects.unrestricted.insert(admin, BOX.path, [{ name: "a" }, { name: "b" }]);
    await other.catalog(admin);
    const changing = held("change");
    const update = objects.unrestricted.update(admin, { id: "box:a" }, [
      { column: "size", operation: "set", value: 7 },
      { column: "holds", operation: "set", value: "box:b" },
    ]);
    await changing.arrived;
    expect(await other.unrestricted.remove(admin, [{ id: "box:a" }])).toBe(1);
    changing.goOn();
    await update;
    expect(await valuesOf("box:a")).toBeUndefined();
    expect(await found(equal("size", 7))).toEqual([]);
    await other.unrestricted.insert(admin, BOX.path, [{ name: "a" }]);
    expect(await valuesOf("box:a")).toEqual({ name: "a" });
    expect((await store.edges(await keyOf("box:a"), "out", { limit: 10 })).items).toEqual([]);
  });

  test("takes all edges to the object along, however many pages they are; one made since stays", async () => {
    await objects.createClass(admin, BOX);
    const names = Array.from({ length: OBJECT_PAGE_MAX + 2 }, (_, at) => `n${at}`);
    await objects.unrestricted.insert(admin, BOX.path, [{ name: "hub" }]);
    await objects.unrestricted.insert(
      admin,
      BOX.path,
      names.map((name) => ({ name, holds: ["box:hub"] })),
    );
    const hub = await keyOf("box:hub");
    const count = async () => {
      const first = await store.edges(hub, "in", { limit: OBJECT_PAGE_MAX });
      if (first.cursor === undefined) return first.items.length;
      const rest = await store.edges(hub, "in", { limit: OBJECT_PAGE_MAX, cursor: first.cursor });
      return first.items.length + rest.items.length;
    };
    expect(await count()).toBe(names.length);
    await objects.unrestricted.remove(admin, [{ id: "box:hub" }]);
    await objects.unrestricted.insert(admin, BOX.path, [{ name: "hub" }, { name: "late", holds: ["box:hub"] }]);
    expect(await count()).toBe(1);
  });

  test("ends the edges that are no newer than it, and asks for definitions only where there are any", async () => {
    await objects.createClass(admin, BOX);
    await objects.unrestricted.insert(admin, BOX.path, [{ name: "hub" }, { name: "eye" }]);
    await objects.unrestricted.insert(
      admin,
      BOX.path,
      ["a", "b", "c"].map((name) => ({ name, holds: ["box:hub", "box:eye"] })),
    );
    const targets = [await keyOf("box:hub"), await keyOf("box:eye")];
    const incoming = await incomingEdges(targets, { store });
    expect([incoming.edges.length, incoming.more.size]).toEqual([6, 0]);
    const catalog = await objects.catalog(admin);
    let asked = 0;
    const definitions = () => {
      asked += 1;
      return Promise.resolve(catalog as never);
    };
    const change: ObjectStore["change"] = (changes) => store.change(changes);
    await endEdges(incoming.edges, { change, definitions, endUs: () => 0 });
    expect(asked, "all of them were made since").toBe(0);
    await endEdges(incoming.edges, {
      change,
      definitions,
      endUs: () => Math.max(...incoming.edges.map(({ timeUs }) => timeUs)),
    });
    for (const target of targets) expect((await store.edges(target, "in", { limit: 10 })).items).toEqual([]);
  });
});
