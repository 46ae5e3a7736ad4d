import { describe, expect, test } from "vitest";
import { cellMap } from "../../cells.ts";
import type { Entity, EntityChange } from "../../objects.ts";
import { again, all, bytes, text, uniqueCid, uniqueName } from "../harness.ts";
import { cellsOf, newKey, type ObjectsSubject } from "./subject.ts";

/** The times of writes: only they decide which value is valid. */
export function timesContract(store: ObjectsSubject): void {
  describe("times", () => {
    latestWriteContract(store);
    repetitionContract(store);
    deathsContract(store);
    writesAtOnceContract(store);
  });
}

function latestWriteContract({ at, write, read, values }: ObjectsSubject): void {
  test("an entity is there from its birth, with what was written before it too", async () => {
    const key = newKey();
    await write({ key, timeUs: at(20), cells: cellsOf({ "1": "early" }) });
    expect(await read(key)).toBeUndefined();
    await write({ key, timeUs: at(10), birth: true, cells: cellsOf({ "1": "at birth", "2": "two" }) });
    const entity = await read(key);
    expect(entity).toMatchObject({ key, birthUs: at(10) });
    expect(entity!.lastUs).toBeGreaterThanOrEqual(at(20));
    expect(entity!.cells.get("1")).toMatchObject({ timeUs: at(20) });
    expect(await values(key)).toEqual({ "1": "early", "2": "two" });
  });

  test("the later time wins in whatever order writes arrive", async () => {
    const key = newKey();
    await write({ key, timeUs: at(1), birth: true });
    await write({ key, timeUs: at(30), cells: cellsOf({ "1": "c", "2": undefined }) });
    await write({ key, timeUs: at(20), cells: cellsOf({ "1": "b", "2": "b" }) });
    expect(await values(key)).toEqual({ "1": "c" });
    await write({ key, timeUs: at(40), cells: cellsOf({ "1": undefined, "2": "d" }) });
    await write({ key, timeUs: at(35), cells: cellsOf({ "1": "x" }) });
    expect(await values(key)).toEqual({ "2": "d" });
  });

  test("at equal times the greater bytes win, and removal over a value", async () => {
    const key = newKey();
    await write({ key, timeUs: at(1), birth: true });
    await write({ key, timeUs: at(5), cells: cellsOf({ "1": "b", "2": "a", "3": "x", "4": undefined }) });
    await write({ key, timeUs: at(5), cells: cellsOf({ "1": "a", "2": "b", "3": undefined, "4": "x" }) });
    expect(await values(key)).toEqual({ "1": "b", "2": "b" });
  });
}

function repetitionContract({ objects, at, write, read, values, find }: ObjectsSubject): void {
  test("repeating a change changes nothing", async () => {
    const key = newKey();
    const term = uniqueName("term");
    const change: EntityChange = {
      key,
      timeUs: at(5),
      birth: true,
      cells: cellsOf({ "1": "a" }),
      addTerms: [term],
      numbers: new Map([[0, 7]]),
      addEdges: [{ type: "is", to: { cid: 1, id: "x" } }],
      version: bytes("v"),
    };
    await write(change);
    const first = await read(key);
    await write(change, change);
    await write({ key, timeUs: at(9), cells: cellsOf({ "1": "b" }) });
    await write(change);
    expect({ ...plain((await read(key))!), cells: undefined, lastUs: 0 }).toEqual({
      ...plain(first!),
      cells: undefined,
      lastUs: 0,
    });
    expect(await values(key)).toEqual({ "1": "b" });
    expect(await find({ terms: [term] })).toEqual([key.id]);
    expect(await all(10, (page) => objects().history(key, {}, page))).toEqual([{ timeUs: at(5), value: bytes("v") }]);
    expect(await all(10, (page) => objects().edges(key, "out", page))).toHaveLength(1);
  });
}

function deathsContract({ objects, at, write, read, values, find }: ObjectsSubject): void {
  test("a death covers what is not later; a late update revives nobody, a later birth begins afresh", async () => {
    const key = newKey();
    const [term, number] = [uniqueName("mortal"), new Map([[1, 5]])];
    await write({
      key,
      timeUs: at(10),
      birth: true,
      cells: cellsOf({ "1": "a", "2": "b" }),
      addTerms: [term],
      numbers: number,
    });
    await write({ key, timeUs: at(20), death: true });
    expect(await read(key)).toBeUndefined();
    expect(await find({ terms: [term] })).toEqual([]);
    await write({ key, timeUs: at(15), cells: cellsOf({ "1": "late" }), addTerms: [term] });
    await write({ key, timeUs: at(25), cells: cellsOf({ "3": "after" }) });
    expect(await read(key)).toBeUndefined();
    await write({ key, timeUs: at(20), birth: true });
    expect(await read(key)).toBeUndefined();
    await write({ key, timeUs: at(30), birth: true, cells: cellsOf({ "1": "new" }) });
    expect(await values(key)).toEqual({ "1": "new", "3": "after" });
    expect((await read(key))!.numbers[1]).toBeUndefined();
    expect(await find({ terms: [term] })).toEqual([]);
  });

  test("of what does not exist it is known when it was written or removed last, and what was written after that", async () => {
    const key = newKey();
    const trace = async () => {
      const { entity, lastUs, leftover } = (await again(() => objects().trace([key])))[0]!;
      return { entity: entity && plain(entity), lastUs, leftover: cellMap(leftover) };
    };
    expect(await trace()).toEqual({ entity: undefined, lastUs: 0, leftover: new Map() });
    await write({ key, timeUs: at(10), birth: true, cells: cellsOf({ "1": "a" }) });
    await write({ key, timeUs: at(12), numbers: new Map([[0, 7]]) });
    expect(await trace()).toEqual({ entity: plain((await read(key))!), lastUs: at(12), leftover: new Map() });
    expect((await read(key))!.lastUs).toBe(at(12));
    await write({ key, timeUs: at(20), death: true });
    expect(await trace()).toEqual({ entity: undefined, lastUs: at(20), leftover: new Map() });
    await write({ key, timeUs: at(25), cells: cellsOf({ "3": "after" }) });
    const { lastUs, leftover } = await trace();
    expect(lastUs).toBe(at(25));
    expect([...leftover].map(([name, { timeUs, value }]) => [name, timeUs, text(value)])).toEqual([
      ["3", at(25), "after"],
    ]);
    await write({ key, timeUs: at(25), cells: cellsOf({ "3": undefined }) }, { key, timeUs: at(30), birth: true });
    expect(await values(key)).toEqual({});
  });

  test("a death that arrives after a later birth leaves it alone", async () => {
    const key = newKey();
    await write({ key, timeUs: at(10), birth: true, cells: cellsOf({ "1": "old" }) });
    await write({ key, timeUs: at(30), birth: true, cells: cellsOf({ "2": "new" }) });
    await write({ key, timeUs: at(20), death: true });
    expect(await values(key)).toEqual({ "2": "new" });
  });
}

function writesAtOnceContract({ objects, at, write, values }: ObjectsSubject): void {
  test("two writers that add different elements both succeed", async () => {
    const key = newKey();
    await write({ key, timeUs: at(1), birth: true });
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        write({ key, timeUs: at(10 + (i % 3)), cells: cellsOf({ [`17/e${i}`]: "1" }) }),
      ),
    );
    expect(Object.keys((await values(key))!).sort()).toEqual(Array.from({ length: 20 }, (_, i) => `17/e${i}`).sort());
  });

  test("a batch holds many entities, and one of them more than once", async () => {
    const cid = uniqueCid();
    const keys = Array.from({ length: 150 }, (_, i) => ({ cid, id: `n${i}` }));
    const births = keys.map(
      (key): EntityChange => ({ key, timeUs: at(1), birth: true, cells: cellsOf({ "1": key.id }) }),
    );
    await write(...births, { key: keys[3]!, timeUs: at(2), cells: cellsOf({ "1": "again" }) });
    const found = await again(() => objects().get([keys[7]!, { cid, id: "nobody" }, keys[3]!]));
    expect(found.map((entity) => entity && text(entity.cells.get("1")!.value))).toEqual(["n7", undefined, "again"]);
  });
}

/** All readable parts of an entity, for comparison. */
function plain({ key, birthUs, lastUs, diedUs, cells, numbers }: Entity): object {
  return { key, birthUs, lastUs, diedUs, numbers, cells: cellMap(cells) };
}
