import { describe, expect, test } from "vitest";
import { belowTerm } from "../../definitions/views.ts";
import {
  admin,
  BOX,
  objects,
  store,
  useWriters,
  held,
  found,
  valuesOf,
  keyOf,
} from "../../../../../test/helpers/objects/write-world.ts";

useWriters();

const ALL = ["size", "ports", "labels", "name"] as const;

describe("index entries that are written again", () => {
  test("find objects by every kind of value, as those that were there from the start", async () => {
    await objects.createClass(admin, { ...BOX, options: { autosearch: true } });
    await objects.unrestricted.insert(admin, BOX.path, [
      { name: "a", size: 7, ports: [80, 443], labels: { zone: "x" }, note: "disk full" },
      { name: "b", size: 9, ports: [], labels: {} },
    ]);
    for (const name of ALL) await objects.alterClass(admin, BOX.path, { kind: "add index", name });
    const refs = ["a", "none", "b"].map((key) => ({ id: `box:${key}` }));
    expect(await objects.unrestricted.refresh(admin, refs)).toBe(2);
    const numbers = await columnNumbers();
    for (const term of [
      `a${numbers.name}=a`,
      `a${numbers.size}=7`,
      `a${numbers.ports}=80`,
      `a${numbers.ports}=443`,
      `a${numbers.labels}=zone`,
    ])
      expect(await borneBy(term), term).toEqual(["a"]);
    expect(await borneBy(`a${numbers.labels}=0`)).toEqual([]);
    expect(await found({ kind: "words", words: ["full"] })).toEqual(["box:a"]);
    await expect
      .poll(async () => new Set((await objects.indexStates(admin)).map(({ state }) => state)), { timeout: 30_000 })
      .toEqual(new Set(["ready"]));
    expect(await found({ kind: "range", column: "size", from: 8 })).toEqual(["box:b"]);
  });

  test("pass over what a class that was dropped has left", async () => {
    await objects.createClass(admin, BOX);
    await objects.unrestricted.insert(admin, BOX.path, [{ name: "a", size: 7 }]);
    const { cid } = await keyOf("box:a");
    const left = { cid: cid + 1_000, id: "left" };
    await store.change([{ key: left, timeUs: 1, birth: true, addTerms: [belowTerm(cid)] }]);
    await objects.alterClass(admin, BOX.path, { kind: "add index", name: "size" });
    await expect
      .poll(async () => new Set((await objects.indexStates(admin)).map(({ state }) => state)), { timeout: 30_000 })
      .toEqual(new Set(["ready"]));
    expect(await borneBy(`a${(await columnNumbers()).size}=7`)).toEqual(["a"]);
  });

  async function columnNumbers(): Promise<Record<string, number>> {
    const columns = (await objects.catalog(admin)).get(BOX.path)?.columns ?? [];
    return Object.fromEntries(columns.map(({ name, number }) => [name, number]));
  }

  /** Ids that the store itself finds, also when queries may not use the index yet. */
  async function borneBy(term: string): Promise<string[]> {
    return (await store.find({ terms: [term] }, { limit: 10 })).items.map(({ key }) => key.id);
  }

  test("of a record do not bring back what was written over them meanwhile", async () => {
    const path = "/matrix/line";
    await objects.createClass(admin, { path, kind: "record", columns: [{ name: "text", type: "varchar" }] });
    const [id = ""] = await objects.unrestricted.insert(admin, path, [{ text: "first" }]);
    const appending = held("append");
    const refreshing = objects.unrestricted.refresh(admin, [{ id }]);
    await appending.arrived;
    // The greater bytes win when one id has two rows, in any order of the writes.
    const writing = objects.unrestricted.insert(admin, path, [{ id, text: "second" }]);
    appending.goOn();
    expect(await refreshing).toBe(1);
    await writing;
    expect(await valuesOf(id)).toEqual({ text: "second" });
  });
});
