import { setImmediate } from "node:timers/promises";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { INDEX_FILL_PAGE_ROWS, RANGE_SLOTS } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { Interleaving, interleaved } from "../../../../test/helpers/engines/interleaving.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { StoppableStores } from "../../../../test/helpers/engines/stoppable-stores.ts";
import type { Stores } from "../../../store/engine.ts";
import { ObjectService, type ClassSpec, type ObjectRow, type Pushdown, type ReadRequest } from "../index.ts";
import { encodeCell } from "../values/codec.ts";

const admin = testPrincipal();
const BOX: ClassSpec = {
  path: "/matrix/box",
  columns: [
    { name: "size", type: "int" },
    { name: "color", type: "varchar" },
    { name: "parts", type: "set", elements: ["int"] },
    { name: "config", type: "map" },
    { name: "note", type: "text" },
  ],
  options: { keyMode: "manu" },
};
const RACK: ClassSpec = {
  path: "/matrix/box/rack",
  columns: [{ name: "slots", type: "int" }],
  options: { keyMode: "manu" },
};
const LINE: ClassSpec = {
  path: "/matrix/line",
  kind: "record",
  columns: [
    { name: "size", type: "int" },
    { name: "text", type: "text" },
  ],
};

let engine: TestEngine;
let opened: ObjectService[];
/** Lets go of what a test holds, also when it failed. */
let letGo: (() => void)[];
/** Log entries of the controllers about their work. */
let told: { readonly msg: string; readonly done?: number; readonly total?: number }[];

beforeEach(async () => {
  engine = await openTestEngine();
  opened = [];
  letGo = [];
  told = [];
});

afterEach(async () => {
  for (const goOn of letGo) goOn();
  await Promise.all(opened.map((service) => service.close()));
  await engine[Symbol.asyncDispose]();
});

function controller(of: Stores = engine): ObjectService {
  const log = pino(
    { base: null },
    { write: (line: string) => void told.push(JSON.parse(line) as (typeof told)[number]) },
  );
  const service = new ObjectService({
    stores: of,
    runtime: { ...testRuntime(realClock), random: seededRandom(opened.length + 1), log },
  });
  opened.push(service);
  return service;
}

async function readAll(request: Partial<ReadRequest>, by: ObjectService): Promise<ObjectRow[]> {
  const rows: ObjectRow[] = [];
  for await (const page of by.read(admin, { class: BOX.path, subtree: true, ...request })) rows.push(...page);
  return rows;
}

/** Ids that the index answers; fails when it is not used. */
async function answered(where: Pushdown, by: ObjectService, path = BOX.path): Promise<string[]> {
  const request = { class: path, subtree: true, where: [where] };
  expect((await by.explain(admin, request)).used).toEqual([where]);
  return (await readAll(request, by)).map((row) => row.id).sort();
}

async function unready(by: ObjectService): Promise<string[]> {
  return (await by.indexStates(admin))
    .filter(({ state }) => state !== "ready")
    .map((index) => `${index.class} ${index.column ?? "words"} ${index.state}`);
}

async function becomesReady(by: ObjectService): Promise<void> {
  await expect.poll(() => unready(by), { timeout: 30_000 }).toEqual([]);
}

const equals = (column: string, value: number | string): Pushdown => ({ kind: "equals", column, values: [value] });
const addIndex = (by: ObjectService, name: string, path = BOX.path) =>
  by.alterClass(admin, path, { kind: "add index", name });

describe("an index that is added to a class with objects", () => {
  test("has all of them when it is ready, those of subclasses too: values, ranges, elements, keys, words", async () => {
    const [a, b] = [controller(), controller()];
    await a.createClass(admin, BOX);
    await a.createClass(admin, RACK);
    await a.insert(admin, BOX.path, [
      { id: "one", size: 1, color: "red", parts: [1, 2], config: { os: "linux" }, note: "disk full" },
      { id: "two", size: 20 },
    ]);
    await a.insert(admin, RACK.path, [{ id: "r", size: 3, parts: [2], note: "disk new" }]);
    await b.update(admin, { id: "box:one" }, [
      { column: "parts", operation: "add", value: [3] },
      { column: "size", operation: "set", value: 2 },
    ]);
    for (const name of ["size", "color", "parts", "config"]) await addIndex(a, name);
    for (const path of [BOX.path, RACK.path])
      await b.alterClass(admin, path, { kind: "set options", options: { autosearch: true } });
    await becomesReady(b);
    for (const by of [a, b]) {
      await expect
        .poll(
          () => by.explain(admin, { class: RACK.path, subtree: true, where: [{ kind: "words", words: ["disk"] }] }),
          { timeout: 30_000 },
        )
        .toMatchObject({ used: [{}] });
      expect(await answered({ kind: "range", column: "size", from: 2, to: 3 }, by)).toEqual(["box:one", "rack:r"]);
      expect(await answered(equals("size", 2), by)).toEqual(["box:one"]);
      expect(await answered(equals("color", "red"), by)).toEqual(["box:one"]);
      expect(await answered(equals("parts", 3), by)).toEqual(["box:one"]);
      expect(await answered(equals("parts", 2), by)).toEqual(["box:one", "rack:r"]);
      expect(await answered(equals("config", "os"), by)).toEqual(["box:one"]);
      expect(await answered({ kind: "words", words: ["disk"] }, by)).toEqual(["box:one", "rack:r"]);
    }
    const [row] = await b.get(admin, [{ id: "box:two" }]);
    expect(row?.vtimeMs).toBe(row?.ctimeMs);
  });

  test("has the records there are, and none that was removed", async () => {
    const a = controller();
    await a.createClass(admin, LINE);
    const ids = await a.insert(admin, LINE.path, [{ size: 1, text: "disk full" }, { size: 2 }, { size: 1 }]);
    await a.remove(admin, [{ id: ids[2]! }]);
    await addIndex(a, "size", LINE.path);
    await a.alterClass(admin, LINE.path, { kind: "set options", options: { autosearch: true } });
    await becomesReady(a);
    expect(await answered(equals("size", 1), a, LINE.path)).toEqual([ids[0]]);
    expect(await answered({ kind: "words", words: ["full"] }, a, LINE.path)).toEqual([ids[0]]);
  });

  test("is not used before a controller whose write began before it has ended that write", async () => {
    const stores = new StoppableStores(engine);
    const [a, b] = [controller(), controller(stores)];
    await a.createClass(admin, BOX);
    await a.insert(admin, BOX.path, [{ id: "old", size: 1 }]);
    await b.catalog(admin);
    const held = stores.hold("change");
    const writing = b.insert(admin, BOX.path, [{ id: "slow", size: 1 }]);
    const { goOn } = await held;
    const adding = addIndex(a, "size");
    await expect.poll(() => unready(a), { timeout: 30_000 }).toEqual(["/matrix/box size write-only"]);
    // Enough writes for the one old object to be indexed, if the pass did not wait.
    for (let at = 0; at < 50; at++) await a.insert(admin, BOX.path, [{ id: `more${at}`, size: 2 }]);
    expect(told).toEqual([]);
    expect((await a.explain(admin, { class: BOX.path, subtree: false, where: [equals("size", 1)] })).used).toEqual([]);
    // A write in flight on another controller does not keep this one from closing.
    await a.close();
    const c = controller();
    goOn();
    await Promise.allSettled([writing, adding]);
    await becomesReady(c);
    expect(await answered(equals("size", 1), c)).toEqual(["box:old", "box:slow"]);
  });

  test("has what a controller wrote that was stopped during the change and went on long after it was ready", async () => {
    const stores = new StoppableStores(engine);
    const [a, b] = [controller(), controller(stores)];
    await a.createClass(admin, BOX);
    await a.insert(admin, BOX.path, [{ id: "old", size: 1 }]);
    await b.catalog(admin);
    const held = stores.hold("change");
    const writing = b.update(admin, { id: "box:old" }, [{ column: "size", operation: "set", value: 2 }]);
    const { goOn } = await held;
    await stores.stop();
    await addIndex(a, "size");
    await becomesReady(a);
    expect(await answered(equals("size", 1), a)).toEqual(["box:old"]);
    goOn();
    stores.goOn();
    expect(await writing).toBe(true);
    expect(await answered(equals("size", 2), a)).toEqual(["box:old"]);
  });

  test("keeps the numbers of its own column although another one had numbers of later times", async () => {
    const a = controller();
    // With them two slots are left.
    const others = Array.from({ length: RANGE_SLOTS - 2 }, (_, at) => `other${at}`);
    await a.createClass(admin, {
      ...BOX,
      columns: [...BOX.columns, ...["weight", "height", ...others].map((name) => ({ name, type: "int" as const }))],
      indexes: ["weight", ...others],
    });
    await a.insert(admin, BOX.path, [{ id: "one", size: 5 }]);
    await a.update(admin, { id: "box:one" }, [{ column: "weight", operation: "set", value: 70 }]);
    await a.alterClass(admin, BOX.path, { kind: "drop index", name: "weight" });
    for (const name of ["size", "height", "weight"]) await addIndex(a, name);
    await becomesReady(a);
    expect(await answered({ kind: "range", column: "size", from: 5, to: 5 }, a)).toEqual(["box:one"]);
    expect(await answered({ kind: "range", column: "weight", from: 70 }, a)).toEqual(["box:one"]);
    // Slots are few: the values of this one are indexed, ranges are not.
    expect(
      (
        await a.explain(admin, {
          class: BOX.path,
          subtree: false,
          where: [{ kind: "range", column: "height", from: 1 }],
        })
      ).used,
    ).toEqual([]);
  });

  test("of a class is kept beside that of a subclass, and either may go", async () => {
    const a = controller();
    await a.createClass(admin, BOX);
    await a.createClass(admin, { ...RACK, indexes: ["size"] });
    await a.insert(admin, RACK.path, [{ id: "r", size: 1 }]);
    await addIndex(a, "size");
    await becomesReady(a);
    await a.update(admin, { id: "rack:r" }, [{ column: "size", operation: "set", value: 2 }]);
    expect(await answered({ kind: "range", column: "size", from: 2 }, a)).toEqual(["rack:r"]);
    await a.alterClass(admin, BOX.path, { kind: "drop index", name: "size" });
    expect(await answered({ kind: "range", column: "size", from: 2 }, a, RACK.path)).toEqual(["rack:r"]);
  });

  test("comes with a key that is added: ids of older objects were not made of it", async () => {
    const a = controller();
    await a.createClass(admin, BOX);
    await a.insert(admin, BOX.path, [{ id: "old", color: "red" }]);
    await a.alterClass(admin, BOX.path, { kind: "add key", name: "color" });
    await becomesReady(a);
    expect(await a.insert(admin, BOX.path, [{ color: "red", size: 2 }])).toEqual(["box:red"]);
    expect(await answered(equals("color", "red"), a)).toEqual(["box:old", "box:red"]);
  });

  test("that an object does not fit into says so, and is dropped", async () => {
    const a = controller();
    await a.createClass(admin, BOX);
    await a.insert(admin, BOX.path, [{ id: "big", parts: Array.from({ length: 1_500 }, (_, at) => at) }]);
    await addIndex(a, "parts");
    await expect
      .poll(() => a.indexStates(admin), { timeout: 30_000 })
      .toContainEqual(
        expect.objectContaining({
          class: BOX.path,
          column: "parts",
          state: "backfill",
          total: 1,
          problem: expect.stringContaining("900 indexed values") as string,
        }),
      );
    await a.alterClass(admin, BOX.path, { kind: "drop index", name: "parts" });
    await addIndex(a, "size");
    await becomesReady(a);
    const { kv } = await engine.tenant("matrix");
    await expect.poll(async () => (await kv.list("objectindexing/pass/")).entries, { timeout: 30_000 }).toEqual([]);
  });

  test("of a class of the platform that got it with a new version of the program is filled, too", async () => {
    const thing = {
      path: "/system/thing",
      columns: [{ name: "size", type: "int" as const, title: "Size" }],
      options: { keyMode: "manu" as const },
      guard: { reading: { permission: "objects:read" as const } },
    };
    const [older, newer] = [controller(), controller()];
    older.registerSystemClass(thing);
    newer.registerSystemClass({ ...thing, indexes: ["size"] });
    await older.insert(admin, "/matrix/system/thing", [{ id: "one", size: 1 }]);
    await becomesReady(newer);
    expect(await answered(equals("size", 1), newer, "/matrix/system/thing")).toEqual(["thing:one"]);
  });

  test("moves no end of the objects that it is filled with", async () => {
    const a = controller();
    await a.createClass(admin, { ...BOX, options: { keyMode: "manu", ttlSeconds: 6_000 } });
    await a.insert(admin, BOX.path, [{ id: "one", size: 1 }]);
    const { cid } = (await a.catalog(admin)).get(BOX.path)!;
    const endsAtMs = async () => (await (await engine.tenant("matrix")).objects.get([{ cid, id: "one" }]))[0]?.endsAtMs;
    const before = await endsAtMs();
    await addIndex(a, "size");
    await becomesReady(a);
    expect(await endsAtMs()).toBe(before);
    expect(before).toBeGreaterThan(realClock.nowMs());
    expect(await answered(equals("size", 1), a, BOX.path)).toEqual(["box:one"]);
  });
});

describe("filling an index", () => {
  const COUNT = 2 * INDEX_FILL_PAGE_ROWS + 50;
  let stores: StoppableStores;
  let a: ObjectService;
  let b: ObjectService;

  /** B is about to write the second page of the objects. */
  async function halfway(): Promise<{ goOn(): void }> {
    stores = new StoppableStores(engine);
    b = controller(stores);
    await b.createClass(admin, BOX);
    await b.insert(
      admin,
      BOX.path,
      Array.from({ length: COUNT }, (_, at) => ({ id: `o${at}`, size: at % 10 })),
    );
    const first = stores.hold("change");
    await addIndex(b, "size");
    const { goOn } = await first;
    const second = stores.hold("change");
    goOn();
    const held = await second;
    letGo.push(
      () => held.goOn(),
      () => stores.goOn(),
    );
    a = controller();
    await a.catalog(admin);
    return held;
  }

  test("is gone on with by another controller, from where the first one had got to", async () => {
    const { goOn } = await halfway();
    const reached = (await a.indexStates(admin)).find(({ column }) => column === "size");
    expect(reached).toMatchObject({ class: BOX.path, state: "backfill", total: COUNT });
    // One page, which may be shorter than was asked for.
    expect(reached?.done).toBeGreaterThan(0);
    expect(reached?.done).toBeLessThanOrEqual(INDEX_FILL_PAGE_ROWS);
    await stores.stop();
    await becomesReady(a);
    expect(told.filter(({ msg }) => msg === "objects are brought into new indexes").at(-1)).toMatchObject({
      done: reached?.done,
      total: COUNT,
    });
    expect(await answered(equals("size", 3), a)).toHaveLength(COUNT / 10);
    await a.update(admin, { id: "box:o3" }, [{ column: "size", operation: "set", value: 77 }]);
    goOn();
    stores.goOn();
    await becomesReady(b);
    for (const by of [a, b])
      await expect
        .poll(() => answered({ kind: "range", column: "size", from: 9 }, by), { timeout: 30_000 })
        .toHaveLength(COUNT / 10 + 1);
  });

  test("ends when the index is dropped, and another one on the same column has a way of its own", async () => {
    const { goOn } = await halfway();
    await a.alterClass(admin, BOX.path, { kind: "drop index", name: "size" });
    await addIndex(a, "size");
    expect(await unready(a)).toEqual(["/matrix/box size write-only"]);
    goOn();
    await becomesReady(a);
    await expect
      .poll(() => told.map(({ msg }) => msg), { timeout: 30_000 })
      .toEqual([
        "objects are brought into new indexes",
        "new indexes were dropped",
        "objects are brought into new indexes",
        "new indexes are ready",
      ]);
    expect(await answered({ kind: "range", column: "size", from: 3, to: 3 }, a)).toHaveLength(COUNT / 10);
  });

  test("brings back nothing that is removed meanwhile, nor its class", async () => {
    const { goOn } = await halfway();
    await a.remove(
      admin,
      Array.from({ length: COUNT }, (_, at) => ({ id: `box:o${at}` })),
    );
    await a.dropClass(admin, BOX.path);
    goOn();
    await becomesReady(a);
    await a.createClass(admin, { ...BOX, indexes: ["size"] });
    expect(await readAll({}, a)).toEqual([]);
    await expect.poll(() => told.at(-1)?.msg, { timeout: 30_000 }).toBe("new indexes were dropped");
  });
});

test("a refresh writes what the indexes lack, and leaves everything else as it is", async () => {
  const a = controller();
  await a.createClass(admin, { ...BOX, indexes: ["size"], options: { keyMode: "manu", autosearch: true } });
  await a.insert(admin, BOX.path, [{ id: "one", size: 5, note: "disk" }]);
  const view = (await a.catalog(admin)).get(BOX.path)!;
  const cell = (name: "size" | "note", value: number | string) =>
    [String(view.column(name)?.number), encodeCell(name === "size" ? "int" : "text", value, name)] as const;
  // As a write is whose controller went away before it had come to the words, and of an index that was lost.
  const written = {
    key: { cid: view.cid, id: "one" },
    timeUs: (realClock.nowMs() + 1_000) * 1_000,
    cells: new Map([cell("size", 6), cell("note", "full")]),
  };
  await (await engine.tenant("matrix")).objects.change([written]);
  const before = await a.get(admin, [{ id: "box:one" }]);
  expect(await answered(equals("size", 6), a)).toEqual([]);
  expect(await a.refresh(admin, [{ id: "box:one" }, { id: "box:none" }])).toBe(1);
  expect(await answered(equals("size", 6), a)).toEqual(["box:one"]);
  expect(await answered({ kind: "range", column: "size", from: 6 }, a)).toEqual(["box:one"]);
  expect(await answered({ kind: "words", words: ["full"] }, a)).toEqual(["box:one"]);
  expect(await a.get(admin, [{ id: "box:one" }])).toEqual(before);
});

const HISTORIES = onCluster ? 3 : 10;

test("whatever two controllers write while indexes are made, dropped and made again, these have all of it in the end", {
  timeout: 300_000,
}, async () => {
  for (let seed = 1; seed <= HISTORIES; seed++) await history(seed);
});

/** Several objects, several writers: what they do and in which order it reaches the store is up to the seed. */
async function history(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const turns = new Interleaving(seededRandom(seed + 0x5eed));
  const path = `/matrix/h${seed}`;
  const [a, b] = [controller(interleaved(engine, turns)), controller(interleaved(engine, turns))];
  const plain = controller();
  await plain.createClass(admin, { ...BOX, path });
  await plain.insert(admin, path, [
    { id: "x", size: 1, parts: [1], note: "disk" },
    { id: "y", color: "red", note: "full disk" },
  ]);
  const dice = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)]!;
  const write = async (): Promise<void> => {
    const by = dice([a, b]);
    const id = dice(["x", "x", "y", "z"]);
    const row: Row = {
      size: dice([1, 2, 3]),
      parts: dice([[1], [2], [1, 3]]),
      note: dice(["disk", "full disk", "late"]),
      color: dice(["red", "blue"]),
    };
    const column = random.next() < 0.6 ? "size" : dice(Object.keys(row));
    const kind = random.next();
    if (kind < 0.15) await by.remove(admin, [{ id: `h${seed}:${id}` }]).catch(unknown);
    else if (kind < 0.4) await by.insert(admin, path, [{ id, [column]: row[column] ?? null }]).catch(unknown);
    else
      await by
        .update(admin, { id: `h${seed}:${id}` }, [{ column, operation: "set", value: row[column] }])
        .catch(unknown);
  };
  await addIndex(a, "size", path);
  await b.alterClass(admin, path, { kind: "set options", options: { autosearch: true } });
  const define = async (): Promise<void> => {
    await addIndex(b, "parts", path);
    if (random.next() < 0.5) {
      await a.alterClass(admin, path, { kind: "drop index", name: "size" });
      await addIndex(b, "size", path);
    }
    while ((await unready(plain)).length > 0) await setImmediate();
  };
  // Filling has begun, and waits for its turns like the writes.
  await turns.run([...Array.from({ length: 6 }, () => write), define, ...Array.from({ length: 6 }, () => write)]);
  const rows = await readAll({ class: path }, plain);
  for (const { id, values } of rows) {
    for (const where of conditions(values))
      expect(await answered(where, plain, path), `seed ${seed}: ${id} by ${JSON.stringify(where)}`).toContain(id);
  }
  await Promise.all([a.close(), b.close(), plain.close()]);
}

function unknown(error: unknown): void {
  if ((error as { code?: string }).code !== "unknown_outcome") throw error;
}

function conditions({ size, parts, note }: Row): Pushdown[] {
  const number =
    typeof size === "number"
      ? [equals("size", size), { kind: "range", column: "size", from: size, to: size } as const]
      : [];
  const elements = Array.isArray(parts) ? (parts as readonly number[]).map((part) => equals("parts", part)) : [];
  const words =
    typeof note === "string" ? note.split(" ").map((word): Pushdown => ({ kind: "words", words: [word] })) : [];
  return [...number, ...elements, ...words];
}
