import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CHANGE_BATCH_MAX, OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import type { Row } from "../../../../common/value.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { MemoryDatabase } from "../../../../test/helpers/engines/memory-engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { StoppableStores } from "../../../../test/helpers/engines/stoppable-stores.ts";
import type { Stores } from "../../../store/engine.ts";
import type { ObjectStore } from "../../../store/objects.ts";
import { belowTerm } from "../definitions/views.ts";
import { ObjectService, type ClassChange, type ClassSpec, type Pushdown } from "../index.ts";
import { endEdges, incomingEdges } from "./incomingedges.ts";

const admin = testPrincipal();
const BOX: ClassSpec = {
  path: "/matrix/box",
  columns: [
    { name: "name", type: "varchar" },
    { name: "size", type: "int" },
    { name: "ports", type: "set", elements: ["int"] },
    { name: "labels", type: "map" },
    { name: "steps", type: "list" },
    { name: "note", type: "text" },
  ],
  keys: ["name"],
};
const ALL = ["size", "ports", "labels", "name"] as const;

let objects: ObjectService;
/** Another controller, whose clock is behind. */
let other: ObjectService;
let store: ObjectStore;
/** A clock five seconds behind the one of `objects`. */
let behind: Clock;
/** The stores of `objects`, whose calls are watched. */
let watched: Stores;
/** Names of the calls that reached the store of objects. */
let calls: string[];
/** Ends the leases of `objects`, as a long pause would. */
let stoppable: StoppableStores;
/** Promises that calls of these names wait for before they are made. */
let before: Partial<Record<keyof ObjectStore, () => Promise<void>>>;

beforeEach(async () => {
  calls = [];
  before = {};
  const database = new MemoryDatabase(realClock);
  const engine = database.engine({ clock: realClock });
  await engine.createTenant("matrix");
  store = (await engine.tenant("matrix")).objects;
  const calling = new Proxy(store, {
    get: (target, name: keyof ObjectStore) => {
      const call = target[name].bind(target) as (...given: unknown[]) => unknown;
      return (...given: unknown[]) => {
        calls.push(name);
        const wait = before[name];
        return wait ? wait().then(() => call(...given)) : call(...given);
      };
    },
  });
  watched = {
    system: () => engine.system(),
    tenant: async (name) => ({ ...(await engine.tenant(name)), objects: calling }),
  };
  let nowMs = realClock.nowMs();
  const clock = { ...realClock, nowMs: () => (nowMs += 1) };
  stoppable = new StoppableStores(watched);
  objects = new ObjectService({ stores: stoppable, runtime: { ...testRuntime(clock), random: seededRandom(1) } });
  behind = { ...clock, nowMs: () => clock.nowMs() - 5_000 };
  other = new ObjectService({ stores: engine, runtime: { ...testRuntime(behind), random: seededRandom(2) } });
  await objects.createEdgeType(admin, { name: "holds", remedy: "" });
});

afterEach(() => Promise.all([objects.close(), other.close()]));

/** Holds the next call of that name just before it is made. */
function held(name: keyof ObjectStore): { readonly arrived: Promise<void>; goOn(): void } {
  let reached = (): void => undefined;
  let goOn = (): void => undefined;
  const arrived = new Promise<void>((resolve) => (reached = resolve));
  const opened = new Promise<void>((resolve) => (goOn = resolve));
  before[name] = () => {
    delete before[name];
    reached();
    return opened;
  };
  return { arrived, goOn: () => goOn() };
}

async function found(where: Pushdown, path = BOX.path): Promise<string[]> {
  const ids: string[] = [];
  for await (const page of objects.read(admin, { class: path, subtree: false, where: [where] }))
    ids.push(...page.map(({ id }) => id));
  return ids.sort();
}

function equal(column: string, value: string | number): Pushdown {
  return { kind: "equals", column, values: [value] };
}

async function valuesOf(id: string): Promise<Row | undefined> {
  return (await objects.get(admin, [{ id }]))[0]?.values;
}

async function removedOnes(): Promise<string[]> {
  const ids: string[] = [];
  for await (const page of objects.removed(admin, BOX.path)) ids.push(...page.map(({ id }) => id));
  return ids.sort();
}

async function keyOf(id: string) {
  const cid = (await objects.catalog(admin)).get(BOX.path)?.cid ?? 0;
  return { cid, id: id.slice("box:".length) };
}

describe("index entries that are written again", () => {
  test("find objects by every kind of value, as those that were there from the start", async () => {
    await objects.createClass(admin, { ...BOX, options: { autosearch: true } });
    await objects.insert(admin, BOX.path, [
      { name: "a", size: 7, ports: [80, 443], labels: { zone: "x" }, note: "disk full" },
      { name: "b", size: 9, ports: [], labels: {} },
    ]);
    for (const name of ALL) await objects.alterClass(admin, BOX.path, { kind: "add index", name });
    const refs = ["a", "none", "b"].map((key) => ({ id: `box:${key}` }));
    expect(await objects.refresh(admin, refs)).toBe(2);
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
    await objects.insert(admin, BOX.path, [{ name: "a", size: 7 }]);
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
    const [id = ""] = await objects.insert(admin, path, [{ text: "first" }]);
    const appending = held("append");
    const refreshing = objects.refresh(admin, [{ id }]);
    await appending.arrived;
    // The greater bytes win when one id has two rows, in any order of the writes.
    const writing = objects.insert(admin, path, [{ id, text: "second" }]);
    appending.goOn();
    expect(await refreshing).toBe(1);
    await writing;
    expect(await valuesOf(id)).toEqual({ text: "second" });
  });
});

describe("a removal", () => {
  test("is on record where versions are kept, until it is made with them; and counts each object once", async () => {
    await objects.createClass(admin, { ...BOX, options: { version: true } });
    await objects.insert(admin, BOX.path, [{ name: "a" }, { name: "b" }, { name: "c" }]);
    expect(await objects.remove(admin, [{ id: "box:a" }, { id: "box:b" }, { id: "box:a" }])).toBe(2);
    expect(await removedOnes()).toEqual(["box:a", "box:b"]);
    await objects.alterClass(admin, BOX.path, { kind: "set options", options: { version: false } });
    const all = ["a", "c", "never"].map((name) => ({ id: `box:${name}` }));
    expect(await objects.remove(admin, all, { withVersions: true })).toBe(2);
    expect(await objects.remove(admin, all, { withVersions: true })).toBe(0);
    await objects.alterClass(admin, BOX.path, { kind: "set options", options: { version: true } });
    expect(await removedOnes()).toEqual(["box:b"]);
    for (const id of ["box:a", "box:c"])
      expect((await store.history(await keyOf(id), {}, { limit: 10 })).items).toEqual([]);
  });

  test("stays one though an update of another controller crosses it, and the next object of that name shows none of it", async () => {
    await objects.createClass(admin, { ...BOX, indexes: ["size"] });
    await objects.insert(admin, BOX.path, [{ name: "a" }, { name: "b" }]);
    await other.catalog(admin);
    const changing = held("change");
    const update = objects.update(admin, { id: "box:a" }, [
      { column: "size", operation: "set", value: 7 },
      { column: "holds", operation: "set", value: "box:b" },
    ]);
    await changing.arrived;
    expect(await other.remove(admin, [{ id: "box:a" }])).toBe(1);
    changing.goOn();
    await update;
    expect(await valuesOf("box:a")).toBeUndefined();
    expect(await found(equal("size", 7))).toEqual([]);
    await other.insert(admin, BOX.path, [{ name: "a" }]);
    expect(await valuesOf("box:a")).toEqual({ name: "a" });
    expect((await store.edges(await keyOf("box:a"), "out", { limit: 10 })).items).toEqual([]);
  });

  test("takes all edges to the object along, however many pages they are; one made since stays", async () => {
    await objects.createClass(admin, BOX);
    const names = Array.from({ length: OBJECT_PAGE_MAX + 2 }, (_, at) => `n${at}`);
    await objects.insert(admin, BOX.path, [{ name: "hub" }]);
    await objects.insert(
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
    await objects.remove(admin, [{ id: "box:hub" }]);
    await objects.insert(admin, BOX.path, [{ name: "hub" }, { name: "late", holds: ["box:hub"] }]);
    expect(await count()).toBe(1);
  });

  test("ends the edges that are no newer than it, and asks for definitions only where there are any", async () => {
    await objects.createClass(admin, BOX);
    await objects.insert(admin, BOX.path, [{ name: "hub" }, { name: "eye" }]);
    await objects.insert(
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

test("a word that two columns share stays found, though a controller whose clock is ahead drops it for one of them", async () => {
  const path = "/matrix/note";
  const columns = ["one", "two"].map((name) => ({ name, type: "text" as const }));
  await objects.createClass(admin, { path, columns, options: { keyMode: "manu", autosearch: true } });
  await objects.insert(admin, path, [{ id: "n", one: "disk" }]);
  const late = new ObjectService({
    stores: watched,
    runtime: { ...testRuntime(behind), random: seededRandom(3) },
  });
  await late.catalog(admin);
  const ref = { id: "note:n" };
  const changing = held("change");
  const adding = late.update(admin, ref, [{ column: "two", operation: "set", value: "disk" }]);
  await changing.arrived;
  for (const value of ["disk full", ""]) await objects.update(admin, ref, [{ column: "one", operation: "set", value }]);
  changing.goOn();
  expect(await adding).toBe(true);
  expect((await valuesOf(ref.id))?.two).toBe("disk");
  expect(await found({ kind: "words", words: ["disk"] }, path)).toEqual([ref.id]);
  expect(await found({ kind: "words", words: ["full"] }, path)).toEqual([]);
  await late.close();
});

describe("a controller that wakes in the middle of a write", () => {
  const LINE: ClassSpec = { path: "/matrix/line", kind: "record", columns: [{ name: "text", type: "varchar" }] };

  beforeEach(async () => {
    await objects.createClass(admin, BOX);
    await objects.createClass(admin, LINE);
    await objects.insert(admin, BOX.path, [{ name: "old" }]);
    await other.catalog(admin);
  });

  /** Before `call` it stands still for longer than its lease lasts, and `change` is made elsewhere. */
  async function across<T>(
    call: keyof ObjectStore,
    { path, change, write }: { readonly path: string; readonly change: ClassChange; write(): Promise<T> },
  ): Promise<T> {
    const asleep = held(call);
    const written = write();
    await asleep.arrived;
    await stoppable.stop();
    await other.alterClass(admin, path, change);
    asleep.goOn();
    stoppable.goOn();
    return written;
  }

  async function numberOf(path: string, name: string): Promise<number | undefined> {
    return (await other.catalog(admin)).get(path)?.column(name)?.number;
  }

  test("keeps the version of an object that its class asks for since", async () => {
    const change: ClassChange = { kind: "set options", options: { version: true } };
    const write = () => objects.update(admin, { id: "box:old" }, [{ column: "size", operation: "set", value: 7 }]);
    expect(await across("change", { path: BOX.path, change, write })).toBe(true);
    const versions: Row[] = [];
    for await (const page of other.history(admin, { id: "box:old" }))
      versions.push(...page.map(({ values }) => values ?? {}));
    expect(versions).toMatchObject([{ name: "old", size: 7 }]);
  });

  test("gives a record what an index asks for that was made meanwhile", async () => {
    const change: ClassChange = { kind: "add index", name: "text" };
    const write = () => objects.insert(admin, LINE.path, [{ text: "x" }]);
    const [id = ""] = await across("append", { path: LINE.path, change, write });
    const cid = (await other.catalog(admin)).get(LINE.path)?.cid ?? 0;
    const [record] = await store.getRecords([{ cid, id: id.slice("line:".length) }]);
    expect(record?.terms).toEqual([`a${await numberOf(LINE.path, "text")}=x`]);
  });

  test("keeps the version of a removal that its class asks for since", async () => {
    const change: ClassChange = { kind: "set options", options: { version: true } };
    const write = () => objects.remove(admin, [{ id: "box:old" }]);
    expect(await across("change", { path: BOX.path, change, write })).toBe(1);
    expect(await removedOnes()).toEqual(["box:old"]);
  });
});

describe("what a write asks of the store", () => {
  const counted = async (work: () => Promise<unknown>): Promise<Record<string, number>> => {
    calls.splice(0);
    await work();
    const counts: Record<string, number> = {};
    for (const call of calls) counts[call] = (counts[call] ?? 0) + 1;
    return counts;
  };

  test("of words that no other write crosses is one change, of a full batch too", async () => {
    await objects.createClass(admin, { ...BOX, options: { autosearch: true } });
    const rows = Array.from({ length: CHANGE_BATCH_MAX }, (_, at) => ({ name: `n${at}`, note: "disk full" }));
    expect((await counted(() => objects.insert(admin, BOX.path, rows))).change).toBe(1);
    const full = [{ column: "note", operation: "set", value: "full again" }] as const;
    expect((await counted(() => objects.update(admin, { id: "box:n0" }, full))).change).toBe(2);
  });

  test("of records that are removed is their removal, a full batch at a time, and nothing of objects", async () => {
    const path = "/matrix/line";
    await objects.createClass(admin, { path, kind: "record", columns: [{ name: "text", type: "varchar" }] });
    const ids = await objects.insert(
      admin,
      path,
      Array.from({ length: CHANGE_BATCH_MAX }, () => ({ text: "x" })),
    );
    const refs = ids.map((id) => ({ id }));
    const counts = await counted(async () => expect(await objects.remove(admin, refs)).toBe(CHANGE_BATCH_MAX));
    expect(counts).toEqual({ getRecords: 1, edges: CHANGE_BATCH_MAX, removeRecords: 1 });
  });

  test("of records that are gone is a look for them, and nobody is told", async () => {
    const path = "/matrix/line";
    await objects.createClass(admin, { path, kind: "record", columns: [{ name: "text", type: "varchar" }] });
    const [id = ""] = await objects.insert(admin, path, [{ text: "x" }]);
    await objects.remove(admin, [{ id }]);
    const told: unknown[] = [];
    objects.onChange((changes) => told.push(changes));
    const counts = await counted(async () => expect(await objects.remove(admin, [{ id }])).toBe(0));
    expect([counts, told]).toEqual([{ getRecords: 1 }, []]);
  });
});

describe("edges of an object", () => {
  test("are replaced by a set, all of them, however many pages they are", async () => {
    await objects.createClass(admin, BOX);
    const names = Array.from({ length: OBJECT_PAGE_MAX + 1 }, (_, at) => `n${at}`);
    await objects.insert(
      admin,
      BOX.path,
      names.map((name) => ({ name })),
    );
    await objects.insert(admin, BOX.path, [{ name: "hub", holds: names.map((name) => `box:${name}`) }]);
    await objects.update(admin, { id: "box:hub" }, [{ column: "holds", operation: "set", value: "box:n0" }]);
    const { items } = await store.edges(await keyOf("box:hub"), "out", { limit: 10 });
    expect(items.map(({ to }) => to.id)).toEqual(["n0"]);
  });
});

describe("an update that follows from what it reads", () => {
  const grown = (values: Row) => [{ column: "size", operation: "set", value: Number(values.size) + 1 }] as const;

  test("loses nothing of another controller, and writes nothing where there is nothing to change", async () => {
    await objects.createClass(admin, BOX);
    await objects.insert(admin, BOX.path, [{ name: "a", size: 1 }]);
    await other.catalog(admin);
    const ref = { id: "box:a" };
    const both = [objects, other].map((by) => by.update(admin, ref, [], { compute: ({ values }) => grown(values) }));
    expect(await Promise.all(both)).toEqual([true, true]);
    expect(await valuesOf("box:a")).toMatchObject({ size: 3 });
    const written = calls.filter((call) => call === "change").length;
    expect(await objects.update(admin, ref, [], { compute: () => undefined })).toBe(false);
    expect(await objects.update(admin, { id: "box:none" }, [], { compute: ({ values }) => grown(values) })).toBe(false);
    expect(calls.filter((call) => call === "change")).toHaveLength(written);
  });
});

describe("what a source brings", () => {
  const path = "/matrix/free";
  const record = (x: number, more: object = {}) => ({
    values: { x },
    timeMs: realClock.nowMs(),
    identity: "s/1/0",
    ...more,
  });

  beforeEach(() =>
    objects.createClass(admin, { path, columns: [{ name: "x", type: "int" }], indexes: ["x"] }).then(() => undefined),
  );

  test("again under one identity is the same object: born once, found by its present value alone", async () => {
    const first = record(1);
    const [id = ""] = await objects.ingest(admin, path, [first]);
    const [born] = await objects.get(admin, [{ id }]);
    expect(await objects.ingest(admin, path, [{ ...first, values: { x: 2 } }])).toEqual([id]);
    expect(await objects.get(admin, [{ id }])).toMatchObject([{ values: { x: 2 }, ctimeMs: born?.ctimeMs }]);
    expect([await found(equal("x", 1), path), await found(equal("x", 2), path)]).toEqual([[], [id]]);
  });

  test("for the first time, and says so, is written without a look at what is there", async () => {
    await objects.ingest(admin, path, [record(1, { isNew: true })]);
    expect(calls).not.toContain("trace");
    await objects.ingest(admin, path, [record(1, { isNew: false })]);
    expect(calls).toContain("trace");
  });
});

describe("a write whose time was settled before", () => {
  const add = (step: string) => [{ column: "steps", operation: "add", value: [step] }] as const;
  const size = (value: number) => [{ column: "size", operation: "set", value }] as const;

  test("changes nothing when it is made again, and loses to a later one", async () => {
    await objects.createClass(admin, { ...BOX, indexes: ["size"] });
    await objects.insert(admin, BOX.path, [{ name: "a", size: 0, steps: ["x"] }]);
    const ref = { id: "box:a" };
    const [writeUs = 0, other, fresh] = await objects.writeTimes(admin, [ref, ref, undefined]);
    expect([other, fresh]).toEqual([writeUs, writeUs]);
    for (let attempt = 0; attempt < 2; attempt++) {
      await objects.update(admin, ref, [...size(1), ...add("y")], { writeUs });
      expect(await valuesOf("box:a")).toMatchObject({ size: 1, steps: ["x", "y"] });
    }
    await objects.update(admin, ref, size(2));
    await objects.update(admin, ref, size(1), { writeUs });
    expect(await valuesOf("box:a")).toMatchObject({ size: 2 });
    expect([await found(equal("size", 1)), await found(equal("size", 2))]).toEqual([[], ["box:a"]]);
  });

  test("gets a later one, and tells it first, only where it would lose what it adds to a list", async () => {
    await objects.createClass(admin, BOX);
    await objects.insert(admin, BOX.path, [{ name: "a", steps: ["x"] }]);
    const ref = { id: "box:a" };
    const [writeUs = 0] = await objects.writeTimes(admin, [ref]);
    const told: number[] = [];
    const retimed = (us: number): Promise<void> => Promise.resolve(void told.push(us));
    await objects.update(admin, ref, size(1), { writeUs, retimed });
    await objects.update(admin, ref, [...add("other"), { column: "ports", operation: "set", value: [5] }]);
    await objects.update(admin, ref, [{ column: "ports", operation: "add", value: [1] }], { writeUs, retimed });
    await objects.update(admin, ref, size(2), { writeUs, retimed });
    expect(told).toEqual([]);
    await objects.update(admin, ref, add("mine"), { writeUs, retimed });
    expect(told).toEqual([expect.any(Number)]);
    expect(told[0]).toBeGreaterThan(writeUs);
    expect(await valuesOf("box:a")).toMatchObject({ steps: ["x", "other", "mine"], ports: [5] });
  });

  test("below later ones is put into the versions at its place; a class without versions reads none for it", async () => {
    const atMs = realClock.nowMs() - 60_000;
    await objects.createClass(admin, BOX);
    await objects.insert(admin, BOX.path, [{ name: "a", size: 2 }]);
    await objects.insert(admin, BOX.path, [{ name: "a", size: 1, note: "late" }], { atMs });
    expect(calls).not.toContain("history");
    expect(await valuesOf("box:a")).toMatchObject({ size: 2, note: "late" });
    await objects.alterClass(admin, BOX.path, { kind: "set options", options: { version: true } });
    await objects.insert(admin, BOX.path, [{ name: "b", size: 2 }]);
    await objects.insert(admin, BOX.path, [{ name: "b", size: 1, note: "late" }], { atMs });
    const sizes: Row[] = [];
    for await (const page of objects.history(admin, { id: "box:b" }))
      sizes.push(...page.map(({ values }) => values ?? {}));
    expect(sizes).toMatchObject([{ size: 2 }, { size: 1, note: "late" }]);
  });
});
