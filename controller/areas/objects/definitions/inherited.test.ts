import { afterEach, beforeEach, expect, test } from "vitest";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { type ClassOptions, ObjectService, type ReadExplanation } from "../index.ts";

const admin = testPrincipal();
const [TOP, MIDDLE, LEAF, OTHER] = [
  "/matrix/top",
  "/matrix/top/middle",
  "/matrix/top/middle/leaf",
  "/matrix/top/other",
];
const GUARDED = {
  path: "/top/guarded",
  columns: [{ name: "name", type: "varchar" as const, meaning: "Name" }],
  keys: ["name"],
  guard: { reading: { permission: "objects:read" as const } },
};

let engine: TestEngine;
let objects: ObjectService;

beforeEach(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ stores: engine, runtime: testRuntime(realClock) });
  objects.registerSystemClass(GUARDED);
});

afterEach(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

const set = (path: string, options: Partial<ClassOptions>) =>
  objects.alterClass(admin, path, { kind: "set options", options });

async function makeTree(options: Partial<ClassOptions> = {}): Promise<void> {
  // It is there already, above a class of the platform.
  await set(TOP, options);
  await objects.createClass(admin, {
    path: MIDDLE,
    columns: [{ name: "note", type: "text" }],
    options: { keyMode: "manu" },
  });
  await objects.createClass(admin, {
    path: LEAF,
    columns: [{ name: "detail", type: "text" }],
    options: { keyMode: "manu" },
  });
}

async function optionsOf(path: string): Promise<ClassOptions | undefined> {
  return (await objects.catalog(admin)).get(path)?.options;
}

async function found(
  word: string,
  path = TOP,
): Promise<{ readonly ids: readonly string[]; readonly used: ReadExplanation["used"] }> {
  const request = { class: path, subtree: true, where: [{ kind: "words" as const, words: [word] }] };
  const ids: string[] = [];
  for await (const page of objects.unrestricted.read(admin, request)) ids.push(...page.map((row) => row.id));
  return { ids: ids.sort(), used: (await objects.unrestricted.explain(admin, request)).used };
}

async function indexesReady(): Promise<void> {
  const states = async () => (await objects.indexStates(admin)).filter(({ state }) => state !== "ready");
  await expect.poll(states, { timeout: 30_000 }).toEqual([]);
}

test("a class has the autosearch, version and ttl of the one above unless it sets its own, also when that changes", async () => {
  await makeTree({ autosearch: true, version: true, ttlSeconds: 60 });
  expect(await optionsOf(LEAF)).toMatchObject({ autosearch: true, version: true, ttlSeconds: 60 });
  await objects.createClass(admin, {
    path: OTHER,
    columns: [],
    options: { autosearch: false, version: false, ttlSeconds: undefined },
  });
  expect(await optionsOf(OTHER)).toMatchObject({ autosearch: false, version: false, ttlSeconds: undefined });
  await set(MIDDLE, { ttlSeconds: 30 });
  await set(TOP, { version: false, ttlSeconds: 90 });
  expect(await optionsOf(LEAF)).toMatchObject({ autosearch: true, version: false, ttlSeconds: 30 });
  await set(TOP, { version: true });
  expect(await optionsOf(LEAF)).toMatchObject({ version: true });
  expect(await optionsOf(OTHER)).toMatchObject({ autosearch: false, version: false, ttlSeconds: undefined });
});

test("the platform's own classes take nothing from those that users set", async () => {
  await makeTree({ autosearch: true, version: true, ttlSeconds: 60 });
  expect(await optionsOf("/matrix/top/guarded")).toMatchObject({
    autosearch: false,
    version: false,
    ttlSeconds: undefined,
  });
});

test("words of subclasses are found by the index of the class above: what was there before, what comes later", async () => {
  await makeTree();
  await objects.createClass(admin, {
    path: OTHER,
    columns: [{ name: "note", type: "text" }],
    options: { keyMode: "manu", autosearch: false },
  });
  await objects.unrestricted.insert(admin, LEAF, [{ id: "old", note: "disk", detail: "disk full" }]);
  await objects.unrestricted.insert(admin, OTHER, [{ id: "deaf", note: "disk" }]);
  await set(TOP, { autosearch: true });
  await indexesReady();
  await objects.unrestricted.insert(admin, MIDDLE, [{ id: "new", note: "disk" }]);
  const words = { kind: "words", words: ["disk"] };
  await expect
    .poll(() => found("disk", MIDDLE), { timeout: 30_000 })
    .toEqual({ ids: ["leaf:old", "middle:new"], used: [words] });
  expect((await found("full", LEAF)).ids).toEqual(["leaf:old"]);
  // Classes without words are read whole; the caller checks again.
  expect(await found("missing", OTHER)).toEqual({ ids: ["other:deaf"], used: [] });
});

test("a class that ends an inherited autosearch for itself is not looked for by words before its words go, nor are those below it", async () => {
  await makeTree({ autosearch: true });
  await indexesReady();
  await objects.unrestricted.insert(admin, MIDDLE, [{ id: "m", note: "disk" }]);
  await objects.unrestricted.insert(admin, LEAF, [{ id: "l", note: "disk" }]);
  await set(MIDDLE, { autosearch: false });
  expect(await optionsOf(LEAF)).toMatchObject({ autosearch: false });
  await objects.unrestricted.insert(admin, LEAF, [{ id: "later", note: "disk" }]);
  expect(await found("disk", LEAF)).toEqual({ ids: ["leaf:l", "leaf:later"], used: [] });
  await set(MIDDLE, { autosearch: true });
  await indexesReady();
  await expect
    .poll(() => found("disk", LEAF), { timeout: 30_000 })
    .toMatchObject({ ids: ["leaf:l", "leaf:later"], used: [{}] });
});

test("versions of a subclass are kept, and read as of a time", async () => {
  await makeTree({ version: true });
  await objects.unrestricted.insert(admin, LEAF, [{ id: "one", note: "first" }], { atMs: realClock.nowMs() - 60_000 });
  await objects.unrestricted.update(admin, { id: "leaf:one" }, [{ column: "note", operation: "set", value: "second" }]);
  const notes: unknown[] = [];
  for await (const page of objects.unrestricted.read(admin, {
    class: MIDDLE,
    subtree: true,
    asOfMs: realClock.nowMs() - 30_000,
  }))
    notes.push(...page.map((row) => row.values.note));
  expect(notes).toEqual(["first"]);
});

// Where a test cannot move the clock, the contract of the object store lets real time pass.
test.each(onCluster ? [] : [60])(
  "objects of a subclass end by the inherited ttl of %i s, or by the own one",
  async (ttlSeconds) => {
    const clock = new TestClock(realClock.nowMs());
    await using own = await openTestEngine({ clock });
    const service = new ObjectService({ stores: own, runtime: testRuntime(clock) });
    const plain = { columns: [], options: { keyMode: "manu" as const } };
    await service.createClass(admin, { path: TOP, ...plain, options: { ttlSeconds } });
    await service.createClass(admin, { path: MIDDLE, ...plain });
    await service.createClass(admin, { path: OTHER, ...plain, options: { keyMode: "manu", ttlSeconds: undefined } });
    await service.unrestricted.insert(admin, MIDDLE, [{ id: "brief" }]);
    await service.unrestricted.insert(admin, OTHER, [{ id: "lasting" }]);
    clock.advance(ttlSeconds * 1_000 + 1_000);
    expect(await service.unrestricted.get(admin, [{ id: "middle:brief" }, { id: "other:lasting" }])).toMatchObject([
      undefined,
      { id: "other:lasting" },
    ]);
    await service.close();
  },
);
