import { afterEach, beforeEach, expect, test } from "vitest";
import type { Row } from "../../../../../common/value.ts";
import { realClock } from "../../../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../../test/helpers/engines/engine.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../../../test/helpers/time/runtime.ts";
import { cellMap } from "../../../../store/cells.ts";
import type { TenantStore } from "../../../../store/engine.ts";
import type { Entity, EntityKey } from "../../../../store/objects.ts";
import { ObjectService, type ClassSpec, type Edit, type ObjectRow } from "../../index.ts";

const admin = testPrincipal();
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const BRIEF_MS = 2_000;
const GONE_WITHIN_MS = 20_000;
const PASS: ClassSpec = {
  path: "/matrix/pass",
  columns: [
    { name: "size", type: "int" },
    { name: "note", type: "varchar" },
    { name: "parts", type: "set", elements: ["varchar"] },
  ],
  indexes: ["size"],
  options: { keyMode: "manu", ttlSeconds: 3_600, autosearch: true },
};
const LINK = { name: "link", remedy: "" };
const WHOLE = { size: 1, note: "a note", parts: ["x", "y"] };

let engine: TestEngine;
let store: TenantStore;
let objects: ObjectService;
/** Time of the next write, independent of the stores' own clocks. */
let nowMs: number;

async function open(on: TestEngine, clock = { ...realClock, nowMs: () => nowMs }): Promise<void> {
  engine = on;
  store = await on.tenant("matrix");
  objects = new ObjectService({ stores: on, runtime: testRuntime(clock) });
}

beforeEach(async () => {
  nowMs = realClock.nowMs();
  await open(await openTestEngine());
});

afterEach(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

async function readAll(request: object = {}): Promise<ObjectRow[]> {
  const rows: ObjectRow[] = [];
  for await (const page of objects.unrestricted.read(admin, { class: PASS.path, subtree: false, ...request }))
    rows.push(...page);
  return rows.sort((a, b) => (a.id < b.id ? -1 : 1));
}

async function counted(): Promise<number> {
  const { count } = await store.objects.countClass(`c${(await keyOf("")).cid}`);
  return count;
}

const idsOf = async (request: object = {}): Promise<readonly string[]> => (await readAll(request)).map(({ id }) => id);
const ofSize = (size: number): object => ({ where: [{ kind: "equals", column: "size", values: [size] }] });
const setSize = (size: number): Edit[] => [{ column: "size", operation: "set", value: size }];

async function keyOf(id: string): Promise<EntityKey> {
  return { cid: (await objects.catalog(admin)).get(PASS.path)!.cid, id };
}

async function stored(id: string): Promise<Entity | undefined> {
  return (await store.objects.get([await keyOf(id)]))[0];
}

async function endedThere(): Promise<readonly string[]> {
  const { items } = await store.scrub.ended({ limit: 100, beforeMs: realClock.nowMs() });
  return items.map(({ key }) => key.id);
}

// Where a test cannot move the clock, the contract of the object store lets real time pass.
test.each(onCluster ? [] : [PASS])(
  "an object of a class with a ttl ends as a whole, counted from its last write",
  async () => {
    await objects.close();
    await engine[Symbol.asyncDispose]();
    const clock = new TestClock(nowMs);
    await open(await openTestEngine({ clock }), clock);
    await objects.createClass(admin, PASS);
    await objects.createEdgeType(admin, LINK);
    await objects.unrestricted.insert(admin, PASS.path, [
      { id: "target" },
      { id: "kept", ...WHOLE, link: ["pass:target"] },
      { id: "left", ...WHOLE },
    ]);
    clock.advance(40 * MINUTE_MS);
    for (const id of ["pass:kept", "pass:target"]) await objects.unrestricted.update(admin, { id }, setSize(2));
    clock.advance(50 * MINUTE_MS);
    expect(await readAll()).toMatchObject([
      { id: "pass:kept", values: { ...WHOLE, size: 2 } },
      { id: "pass:target", values: { size: 2 } },
    ]);
    expect(await idsOf(ofSize(2))).toEqual(["pass:kept", "pass:target"]);
    expect(await idsOf(ofSize(1))).toEqual([]);
    const links = async (): Promise<number> =>
      (await store.objects.edges(await keyOf("kept"), "out", { limit: 10 })).items.length;
    expect(await links()).toBe(1);
    expect(await counted()).toBe(2);
    clock.advance(10 * MINUTE_MS);
    expect(await readAll()).toEqual([]);
    expect(await counted()).toBe(0);
    expect(await links()).toBe(0);
  },
);

test("each write moves the end, a backdated one does not, and without a ttl the object ends no more", async () => {
  await objects.createClass(admin, PASS);
  const endOf = async (): Promise<number | undefined> => (await stored("one"))?.endsAtMs;
  nowMs -= 50 * MINUTE_MS;
  await objects.unrestricted.insert(admin, PASS.path, [{ id: "one", ...WHOLE }]);
  expect(await endOf()).toBe(nowMs + HOUR_MS);
  nowMs += 10 * MINUTE_MS;
  await objects.unrestricted.update(admin, { id: "pass:one" }, setSize(2));
  const movedMs = nowMs + HOUR_MS;
  expect(await endOf()).toBe(movedMs);
  nowMs += 10 * MINUTE_MS;
  await objects.unrestricted.insert(admin, PASS.path, [{ id: "one", note: "earlier" }], {
    atMs: nowMs - 15 * MINUTE_MS,
  });
  expect(await endOf()).toBe(movedMs);
  await objects.alterClass(admin, PASS.path, { kind: "set options", options: { ttlSeconds: undefined } });
  await objects.unrestricted.update(admin, { id: "pass:one" }, setSize(3));
  expect(await endOf()).toBe(Infinity);
  await objects.alterClass(admin, PASS.path, { kind: "set options", options: { ttlSeconds: 7_200 } });
  await objects.unrestricted.update(admin, { id: "pass:one" }, setSize(4));
  expect(await endOf()).toBe(nowMs + 2 * HOUR_MS);
});

test("an object that has ended is shown as of the times before, also when it was cleared up", async () => {
  await objects.createClass(admin, { ...PASS, options: { ...PASS.options, version: true } });
  nowMs -= 5 * HOUR_MS;
  const writtenMs = nowMs;
  await objects.unrestricted.insert(admin, PASS.path, [{ id: "one", ...WHOLE }]);
  nowMs = realClock.nowMs();
  for (const maintained of [false, true]) {
    if (maintained) await objects.maintain(admin);
    expect(await readAll()).toEqual([]);
    const then = { asOfMs: writtenMs + 59 * MINUTE_MS };
    expect(await readAll(then)).toMatchObject([{ id: "pass:one", values: WHOLE }]);
    expect(await readAll({ ...then, ids: ["pass:one"] })).toMatchObject([{ values: WHOLE }]);
    expect(await readAll({ asOfMs: writtenMs + 61 * MINUTE_MS })).toEqual([]);
    expect(await readAll({ asOfMs: writtenMs - 1 })).toEqual([]);
  }
  expect(await endedThere()).toEqual([]);
});

test("versions of an object that has ended go by versionttl, and its tombstone with them", async () => {
  const options = { ...PASS.options, version: true, versionTtlSeconds: 3_600 };
  await objects.createClass(admin, { ...PASS, options });
  const versionsOf = async (id: string): Promise<number> =>
    (await store.objects.history(await keyOf(id), {}, { limit: 10 })).items.length;
  const tombstones = async (): Promise<number> =>
    (await store.objects.find({ terms: [`v${(await keyOf("")).cid}`] }, { limit: 10 })).items.length;
  nowMs -= 90 * MINUTE_MS;
  await objects.unrestricted.insert(admin, PASS.path, [{ id: "lately", ...WHOLE }]);
  expect([await stored("lately"), await versionsOf("lately"), await tombstones()]).toEqual([undefined, 1, 1]);
  nowMs -= 2 * HOUR_MS;
  await objects.unrestricted.insert(admin, PASS.path, [{ id: "long ago", ...WHOLE }]);
  // Cassandra counts in seconds, and keeps what has ended for one.
  await expect.poll(() => versionsOf("long ago"), { timeout: GONE_WITHIN_MS }).toBe(0);
  expect([await stored("long ago"), await tombstones()]).toEqual([undefined, 1]);
});

test("inserted again after its end an object has nothing of its life before, wherever that was cleared up", async () => {
  await objects.createClass(admin, PASS);
  await objects.createEdgeType(admin, LINK);
  await objects.unrestricted.insert(admin, PASS.path, [{ id: "target" }]);
  nowMs -= 3 * HOUR_MS;
  const former = (id: string): Row => ({ id, ...WHOLE, link: ["pass:target"] });
  await objects.unrestricted.insert(admin, PASS.path, [former("one"), former("two")]);
  nowMs += 3 * HOUR_MS;
  expect(await idsOf()).toEqual(["pass:target"]);
  await objects.unrestricted.insert(admin, PASS.path, [{ id: "one", size: 2 }]);
  await objects.maintain(admin);
  await objects.unrestricted.insert(admin, PASS.path, [{ id: "two", size: 2 }]);
  expect(await readAll(ofSize(2))).toMatchObject([{ values: { size: 2 } }, { values: { size: 2 } }]);
  for (const id of ["one", "two"]) {
    expect([...cellMap((await stored(id))!.cells).keys()]).toHaveLength(1);
    expect((await store.objects.edges(await keyOf(id), "out", { limit: 10 })).items).toEqual([]);
  }
  expect(await endedThere()).toEqual([]);
});

/**
 * As a version wrote it in whose stores each part ended by itself: all of it after a moment, the last write after an hour.
 * It is ahead of the clock, so that the next write comes right behind it.
 */
async function writtenBefore(id: string, isLastEnding = true): Promise<void> {
  if ((await objects.catalog(admin)).get(PASS.path) === undefined) {
    await objects.createClass(admin, { ...PASS, options: { ...PASS.options, ttlSeconds: undefined } });
    await objects.createEdgeType(admin, LINK);
    await objects.unrestricted.insert(admin, PASS.path, [{ id: "target" }]);
  }
  await objects.unrestricted.insert(admin, PASS.path, [{ id, ...WHOLE, link: ["pass:target"] }]);
  const entity = (await stored(id))!;
  const { key, cells, numbers } = entity;
  const [edge] = (await store.objects.edges(key, "out", { limit: 10 })).items;
  await store.objects.change([
    {
      key,
      timeUs: entity.lastUs + MINUTE_MS * 1_000,
      birth: true,
      cells: new Map([...cellMap(cells)].map(([name, { value }]) => [name, value])),
      numbers: new Map(numbers.flatMap((value, slot) => (value === undefined ? [] : [[slot, value] as const]))),
      addTerms: [`c${key.cid}`],
      addEdges: [{ type: "link", to: edge!.to }],
      expiresAtMs: realClock.nowMs() + BRIEF_MS,
    },
    {
      key,
      timeUs: entity.lastUs + MINUTE_MS * 1_000 + 1,
      numbers: new Map([[0, entity.numbers[0]]]),
      ...(isLastEnding ? { expiresAtMs: realClock.nowMs() + HOUR_MS } : {}),
    },
  ]);
}

test("what an earlier version wrote ends as a whole after it was updated, or maintenance has seen it", async () => {
  await writtenBefore("updated");
  await writtenBefore("maintained");
  await writtenBefore("lasting", false);
  await writtenBefore("neither");
  await objects.alterClass(admin, PASS.path, { kind: "set options", options: { ttlSeconds: 3_600 } });
  await objects.unrestricted.update(admin, { id: "pass:updated" }, setSize(0));
  expect((await stored("neither"))?.endsAtMs).toBeUndefined();
  await objects.maintain(admin);
  const neither = await keyOf("neither");
  expect((await stored("neither"))?.endsAtMs).toBeGreaterThan(realClock.nowMs());
  // An object that was written without a ttl stays until its next write.
  expect((await stored("target"))?.endsAtMs).toBeUndefined();
  await store.objects.change([{ key: neither, timeUs: (nowMs + 2 * MINUTE_MS) * 1_000, death: true }]);
  // A part that was left as it was would be gone by the time this one is.
  const canary = { cid: 1_000_000, id: "canary" };
  const expiresAtMs = realClock.nowMs() + BRIEF_MS;
  await store.objects.change([{ key: canary, timeUs: nowMs * 1_000, birth: true, expiresAtMs }]);
  const isThere = async (): Promise<boolean> => (await store.objects.get([canary]))[0] !== undefined;
  await expect.poll(isThere, { timeout: GONE_WITHIN_MS }).toBe(false);
  for (const [id, size] of [
    ["maintained", 1],
    ["lasting", 1],
    ["updated", 0],
  ] as const) {
    expect((await readAll(ofSize(size))).find((row) => row.id === `pass:${id}`)?.values).toEqual({ ...WHOLE, size });
    expect((await store.objects.edges(await keyOf(id), "out", { limit: 10 })).items).toHaveLength(1);
    expect((await stored(id))?.endsAtMs).toBeGreaterThan(realClock.nowMs());
  }
  const found = await store.objects.find({ terms: [`c${neither.cid}`] }, { limit: 10 });
  expect(found.items.map(({ key }) => key.id).sort()).toEqual(["lasting", "maintained", "target", "updated"]);
  expect((await stored("lasting"))?.endsAtMs).toBe(Infinity);
});

test("an object that cannot be decoded keeps maintenance from no other, and goes when it has ended", async () => {
  const view = await objects.createClass(admin, PASS);
  const size = view.columns.find(({ name }) => name === "size")!;
  const broken = { birth: true, cells: new Map([[String(size.number), Uint8Array.of(250)]]) } as const;
  const timeUs = (nowMs - 3 * HOUR_MS) * 1_000;
  const endsAtMs = nowMs - 2 * HOUR_MS;
  const expiresAtMs = nowMs + HOUR_MS;
  await store.objects.change([
    { key: await keyOf("gone"), timeUs, ...broken, endsAtMs },
    { key: await keyOf("broken"), timeUs, ...broken, expiresAtMs },
    { key: await keyOf("sound"), timeUs, birth: true, numbers: new Map([[0, 1]]), expiresAtMs },
  ]);
  await objects.maintain(admin);
  expect(await endedThere()).toEqual([]);
  expect((await stored("sound"))?.endsAtMs).toBeGreaterThan(nowMs);
  expect(await store.kv.get("objects/joined")).toBeDefined();
});
