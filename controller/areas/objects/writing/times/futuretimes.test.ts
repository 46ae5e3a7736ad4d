import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Clock } from "../../../../../common/time.ts";
import { realClock, seededRandom } from "../../../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../../../test/helpers/time/runtime.ts";
import { TIMES } from "../../../../../test/helpers/time/times.ts";
import type { EntityKey, ObjectStore } from "../../../../store/objects.ts";
import { ObjectService, type Edit, type ObjectRow } from "../../index.ts";

const admin = testPrincipal();
const BOX = "/matrix/ahead/box";
const YEAR_MS = 365 * 86_400_000;
/** The whole run has a part of that. */
const NEAR_MS = 600_000;
const FUTURE_MS = realClock.nowMs() + 4 * YEAR_MS;
const size = (value: number): readonly Edit[] => [{ column: "size", operation: "set", value }];
const links = (...ids: string[]): readonly Edit[] => [{ column: "cable", operation: "set", value: ids }];

let engine: TestEngine;
let store: ObjectStore;
let objects: ObjectService;
let seed = 0;

/** A controller that is started. */
function started(clock: Clock = realClock): ObjectService {
  seed += 1;
  return new ObjectService({ stores: engine, runtime: { ...testRuntime(clock), random: seededRandom(seed) } });
}

beforeAll(async () => {
  engine = await openTestEngine();
  store = (await engine.tenant("matrix")).objects;
  objects = started();
  await objects.createEdgeType(admin, { name: "cable", remedy: "" });
  const columns = [
    { name: "name", type: "varchar" as const },
    { name: "size", type: "int" as const },
  ];
  const options = { version: true };
  await objects.createClass(admin, { path: BOX, columns, keys: ["name"], indexes: ["size"], options });
});

afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

async function keyOf(name: string): Promise<EntityKey> {
  return { cid: (await objects.catalog(admin)).get(BOX)?.cid ?? 0, id: name };
}

/** Objects as a version that took any time of `AT` left them: each cell, term, number and version is of that time. */
async function leftInFuture(...names: string[]): Promise<void> {
  const rows = names.map((name) => ({ name, size: 0 }));
  await objects.unrestricted.insert(admin, BOX, rows, { atMs: FUTURE_MS });
  const keys = await Promise.all(names.map(keyOf));
  for (const entity of await store.get(keys)) expect(entity?.lastUs).toBe(FUTURE_MS * 1_000);
}

async function row(name: string): Promise<ObjectRow | undefined> {
  return (await objects.unrestricted.get(admin, [{ id: `box:${name}` }]))[0];
}

/** Which of these objects were written about now. */
async function presentOf(...names: string[]): Promise<readonly string[]> {
  const found = await Promise.all(names.map(async (name) => ({ name, vtimeMs: (await row(name))?.vtimeMs ?? 0 })));
  return found.filter(({ vtimeMs }) => Math.abs(vtimeMs - realClock.nowMs()) < NEAR_MS).map(({ name }) => name);
}

async function sized(value: number): Promise<string[]> {
  const found: string[] = [];
  const where = [{ kind: "equals" as const, column: "size", values: [value] }];
  for await (const page of objects.unrestricted.read(admin, { class: BOX, subtree: false, where }))
    found.push(...page.filter(({ values }) => values["size"] === value).map(({ id }) => id));
  return found.sort();
}

async function edgesTo(name: string): Promise<string[]> {
  const seen: string[] = [];
  for await (const page of objects.unrestricted.edges(admin, [{ id: `box:${name}` }], { direction: "in" }))
    seen.push(...page.map(({ source }) => source));
  return seen.sort();
}

test("times of one object move no other: neither plain writes, nor those whose times are settled before, nor those of one call", async () => {
  await leftInFuture("f1");
  await objects.unrestricted.insert(admin, BOX, [{ name: "p1", size: 1 }]);
  expect(await objects.unrestricted.update(admin, { id: "box:f1" }, size(1))).toBe(true);
  // As a batch does.
  const refs = ["f1", "p1", "p2"].map((name) => ({ id: `box:${name}` }));
  const [futureUs = 0, presentUs = 0, freshUs = 0] = await objects.unrestricted.writeTimes(admin, refs);
  await objects.unrestricted.update(admin, { id: "box:f1" }, size(2), { writeUs: futureUs });
  await objects.unrestricted.update(admin, { id: "box:p1" }, size(2), { writeUs: presentUs });
  const record = (name: string, writeUs: number) => ({ values: { name, size: 2 }, timeMs: 1, identity: name, writeUs });
  await objects.unrestricted.ingest(admin, BOX, [record("p2", freshUs), record("f1", futureUs)]);
  await objects.unrestricted.insert(admin, BOX, [
    { name: "p3", size: 2 },
    { name: "f1", size: 2 },
    { name: "p4", size: 2 },
  ]);
  expect(await presentOf("f1", "p1", "p2", "p3", "p4")).toEqual(["p1", "p2", "p3", "p4"]);
  expect(await sized(2)).toEqual(["box:f1", "box:p1", "box:p2", "box:p3", "box:p4"]);
  const next = started();
  await next.unrestricted.update(admin, { id: "box:f1" }, size(3));
  const [again = 0, other = 0] = await next.unrestricted.writeTimes(admin, refs);
  expect(again).toBeGreaterThan(FUTURE_MS * 1_000);
  expect(other).toBeLessThan((realClock.nowMs() + NEAR_MS) * 1_000);
  await next.unrestricted.insert(admin, BOX, [{ name: "p5", size: 3 }]);
  await next.close();
  expect(await presentOf("p5")).toEqual(["p5"]);
});

test("an object of the future is written, and its versions are in order, as often as one likes", {
  timeout: 240_000 * TIMES,
}, async () => {
  await leftInFuture("f2");
  const writes = onCluster ? 20 : 200 * TIMES;
  for (let value = 1; value <= writes; value += 1) {
    if (value % 3 === 0) await objects.unrestricted.insert(admin, BOX, [{ name: "f2", size: value }]);
    else if (value % 3 === 1) await objects.unrestricted.update(admin, { id: "box:f2" }, size(value));
    else {
      const [writeUs = 0] = await objects.unrestricted.writeTimes(admin, [{ id: "box:f2" }]);
      await objects.unrestricted.update(admin, { id: "box:f2" }, size(value), { writeUs });
    }
  }
  const sizes: unknown[] = [];
  for await (const page of objects.unrestricted.history(admin, { id: "box:f2" }))
    sizes.push(...page.map(({ values }) => values?.["size"]));
  expect(sizes).toEqual(Array.from({ length: writes + 1 }, (_, at) => writes - at));
  expect((await row("f2"))?.values["size"]).toBe(writes);
  expect(((await row("f2"))?.vtimeMs ?? 0) - FUTURE_MS).toBeLessThan(writes);
});

test("a write whose time is settled before one of its own object is written is lost to none of its controller", async () => {
  await leftInFuture("f3");
  const ref = { id: "box:f3" };
  const [firstUs = 0] = await objects.unrestricted.writeTimes(admin, [ref]);
  const [secondUs = 0] = await objects.unrestricted.writeTimes(admin, [ref]);
  await objects.unrestricted.update(admin, ref, size(9));
  await objects.unrestricted.update(admin, ref, size(8), { writeUs: secondUs });
  await objects.unrestricted.update(admin, ref, size(7), { writeUs: firstUs });
  expect((await row("f3"))?.values["size"]).toBe(9);
  expect(new Set([firstUs, secondUs, ((await row("f3"))?.vtimeMs ?? 0) * 1_000]).size).toBe(3);
});

test("a source that has fixed its times writes an object of the future above its own time where it asks for that, and not below", async () => {
  await leftInFuture("f9");
  await objects.unrestricted.insert(admin, BOX, [{ name: "p10", size: 1 }]);
  const writeUs = (realClock.nowMs() - 60_000) * 1_000;
  const record = (name: string) => ({ values: { name, size: 5 }, timeMs: 1, identity: name, writeUs });
  await objects.unrestricted.ingest(admin, BOX, [record("f9"), record("p10")]);
  expect([(await row("f9"))?.values["size"], (await row("p10"))?.values["size"]]).toEqual([0, 1]);
  await objects.unrestricted.ingest(admin, BOX, [record("f9"), record("p10")], { aboveAhead: true });
  expect([(await row("f9"))?.values["size"], (await row("p10"))?.values["size"]]).toEqual([5, 1]);
});

describe("the removal of an object of the future", () => {
  test("removes it, and with it objects of the present, which are of the present again when they are made again", async () => {
    await leftInFuture("f4");
    await objects.unrestricted.insert(admin, BOX, [{ name: "p6", size: 4 }]);
    expect(await objects.unrestricted.remove(admin, [{ id: "box:f4" }, { id: "box:p6" }])).toBe(2);
    expect([await row("f4"), await row("p6"), await sized(0), await sized(4)]).toEqual([undefined, undefined, [], []]);
    await objects.unrestricted.insert(admin, BOX, [
      { name: "f4", size: 4 },
      { name: "p6", size: 4 },
    ]);
    expect([await presentOf("f4", "p6"), await sized(4)]).toEqual([["p6"], ["box:f4", "box:p6"]]);
    expect(await objects.unrestricted.remove(admin, [{ id: "box:f4" }], { withVersions: true })).toBe(1);
    const versions: unknown[] = [];
    for await (const page of objects.unrestricted.history(admin, { id: "box:f4" })) versions.push(...page);
    expect([await row("f4"), versions]).toEqual([undefined, []]);
  });

  test("is made by a time that was settled before as well", async () => {
    await leftInFuture("f5");
    const [writeUs = 0] = await objects.unrestricted.writeTimes(admin, [{ id: "box:f5" }]);
    expect(await objects.unrestricted.remove(admin, [{ id: "box:f5" }], { writeUs })).toBe(1);
    expect(await row("f5")).toBeUndefined();
  });
});

describe("relations between objects of the future and of the present", () => {
  test("move neither end, and end with their target whichever of both is of the future", async () => {
    await leftInFuture("f6", "f7");
    await objects.unrestricted.insert(admin, BOX, [{ name: "p7" }, { name: "p8" }]);
    const linked = async (from: string, to: string) =>
      objects.unrestricted.update(admin, { id: `box:${from}` }, links(`box:${to}`));
    await linked("p7", "f6");
    await linked("f6", "p8");
    await linked("f7", "f6");
    expect([await edgesTo("f6"), await edgesTo("p8")]).toEqual([["box:f7", "box:p7"], ["box:f6"]]);

    // Ends and begins again where the target is removed and made again.
    await objects.unrestricted.remove(admin, [{ id: "box:f6" }, { id: "box:p8" }]);
    await objects.unrestricted.insert(admin, BOX, [{ name: "f6" }, { name: "p8" }]);
    expect([await edgesTo("f6"), await edgesTo("p8")]).toEqual([[], []]);
    await linked("p7", "f6");
    await linked("f6", "p8");
    await linked("f7", "p8");
    await linked("p8", "f6");
    expect([await edgesTo("f6"), await edgesTo("p8")]).toEqual([
      ["box:p7", "box:p8"],
      ["box:f6", "box:f7"],
    ]);
    expect(await presentOf("f6", "p7", "p8")).toEqual(["p7", "p8"]);

    await objects.unrestricted.remove(admin, [{ id: "box:p8" }]);
    await objects.unrestricted.insert(admin, BOX, [{ name: "p8" }]);
    expect([await edgesTo("p8"), await edgesTo("f6")]).toEqual([[], ["box:p7"]]);
    await objects.unrestricted.remove(admin, [{ id: "box:p7" }]);
    await objects.unrestricted.insert(admin, BOX, [{ name: "p7" }]);
    expect([await edgesTo("f6"), await presentOf("p7", "p8")]).toEqual([[], ["p7", "p8"]]);
  });

  test("of an earlier version end with their target too", async () => {
    await objects.unrestricted.insert(admin, BOX, [{ name: "p9" }]);
    const [from, to] = [await keyOf("f8"), await keyOf("p9")];
    await leftInFuture("f8");
    await store.change([{ key: from, timeUs: FUTURE_MS * 1_000, addEdges: [{ type: "cable", to }] }]);
    expect(await edgesTo("p9")).toEqual(["box:f8"]);
    await objects.unrestricted.remove(admin, [{ id: "box:p9" }]);
    await objects.unrestricted.insert(admin, BOX, [{ name: "p9" }]);
    expect([await edgesTo("p9"), await presentOf("p9")]).toEqual([[], ["p9"]]);
  });
});

test.skipIf(onCluster)("a clock that was wrong moves what is written by it, and nothing afterwards", async () => {
  let aheadMs = 4 * YEAR_MS;
  const controller = started({ ...realClock, nowMs: () => realClock.nowMs() + aheadMs });
  await controller.unrestricted.insert(admin, BOX, [{ name: "w1" }]);
  await controller.unrestricted.writeTimes(admin, [undefined]);
  aheadMs = 0;
  await controller.unrestricted.insert(admin, BOX, [{ name: "w2" }, { name: "w1" }]);
  await controller.unrestricted.update(admin, { id: "box:w1" }, size(1));
  await controller.unrestricted.insert(admin, BOX, [{ name: "w3" }]);
  await controller.close();
  expect(await presentOf("w1", "w2", "w3")).toEqual(["w2", "w3"]);
});
