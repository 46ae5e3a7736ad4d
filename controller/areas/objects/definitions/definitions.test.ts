import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { CATALOG_ACKNOWLEDGE_DEADLINE_MS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { prove } from "../../../../test/helpers/runs/evidence.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { StoppableStores } from "../../../../test/helpers/engines/stoppable-stores.ts";
import type { Stores } from "../../../store/engine.ts";
import { ObjectService, type ClassSpec, type ObjectRow, type ReadRequest } from "../index.ts";
import { TenantCatalog } from "./catalog.ts";

const admin = testPrincipal();
const THING: ClassSpec = {
  path: "/matrix/thing",
  columns: [
    { name: "size", type: "int" },
    { name: "color", type: "varchar" },
  ],
  indexes: ["color"],
  options: { keyMode: "manu" },
};
const LINE: ClassSpec = {
  path: "/matrix/line",
  kind: "record",
  columns: [
    { name: "size", type: "int" },
    { name: "color", type: "varchar" },
  ],
};

let engine: TestEngine;
let stores: StoppableStores;
/** Changes definitions. */
let a: ObjectService;
/** Is stopped in the middle of writes. */
let b: ObjectService;
let proved = 0;

beforeEach(async () => {
  engine = await openTestEngine();
  stores = new StoppableStores(engine);
  a = controller(engine);
  b = controller(stores);
  await a.createClass(admin, THING);
  await a.createClass(admin, LINE);
  await a.insert(admin, THING.path, [{ id: "old", size: 1, color: "red" }]);
  await b.catalog(admin);
});

afterEach(async () => {
  stores.goOn();
  await Promise.all([a.close(), b.close()]);
  await engine[Symbol.asyncDispose]();
});

function controller(of: Stores, clock: Clock = realClock): ObjectService {
  return new ObjectService({ stores: of, runtime: { ...testRuntime(clock), random: seededRandom(proved + 1) } });
}

async function readAll(request: Partial<ReadRequest>, by: ObjectService): Promise<ObjectRow[]> {
  const rows: ObjectRow[] = [];
  for await (const page of by.read(admin, { class: THING.path, subtree: false, ...request })) rows.push(...page);
  return rows;
}

/** Removed objects that still have versions. */
async function removedThings(): Promise<string[]> {
  const ids: string[] = [];
  for await (const page of a.removed(admin, THING.path)) ids.push(...page.map(({ id }) => id));
  return ids;
}

async function cidOf(path: string): Promise<number> {
  return (await a.catalog(admin)).get(path)?.cid ?? 0;
}

async function columnNumber(path: string, name: string): Promise<number> {
  return (await a.catalog(admin)).get(path)?.column(name)?.number ?? 0;
}

/** Ids that the store itself finds, also when queries may not use the index. */
async function borneBy(term: string): Promise<string[]> {
  const { items } = await (await engine.tenant("matrix")).objects.find({ terms: [term] }, { limit: 100 });
  return items.map((entity) => entity.key.id);
}

/**
 * Stops B just before `writing` reaches the store, for longer than its lease lasts. Meanwhile A acts; then B continues.
 */
async function acrossStop<T>(
  writing: () => Promise<T>,
  meanwhile: () => Promise<unknown>,
  call: "change" | "append" = "change",
): Promise<T> {
  const held = stores.hold(call);
  const written = writing();
  written.catch(() => undefined);
  const { goOn } = await held;
  try {
    await stores.stop();
    await meanwhile();
  } finally {
    goOn();
    stores.goOn();
  }
  return written;
}

function kept(): void {
  proved += 1;
}

afterAll(() => {
  if (proved > 0) prove("definitions-across-a-pause", { engine: engine.kind, cases: proved });
});

describe("a controller that was stopped between its check and its write", () => {
  test("adds what an index asks for that was made meanwhile", async () => {
    const index = () => a.alterClass(admin, THING.path, { kind: "add index", name: "size" });
    await acrossStop(() => b.insert(admin, THING.path, [{ id: "new", size: 7 }]), index);
    expect(await borneBy(`a${await columnNumber(THING.path, "size")}=7`)).toEqual(["new"]);
    expect(await a.get(admin, [{ id: "thing:new" }])).toMatchObject([{ values: { size: 7 } }]);
    kept();
  });

  test("keeps each version of an object as soon as its class asks for it", async () => {
    const keep = () => a.alterClass(admin, THING.path, { kind: "set options", options: { version: true } });
    expect(
      await acrossStop(
        () => b.update(admin, { id: "thing:old" }, [{ column: "size", operation: "set", value: 2 }]),
        keep,
      ),
    ).toBe(true);
    const { items } = await (await engine.tenant("matrix")).objects.history(
      { cid: await cidOf(THING.path), id: "old" },
      {},
      { limit: 10 },
    );
    expect(items).toHaveLength(1);
    kept();
  });

  test("keeps the version of a removal as soon as its class asks for it", async () => {
    const keep = () => a.alterClass(admin, THING.path, { kind: "set options", options: { version: true } });
    expect(await acrossStop(() => b.remove(admin, [{ id: "thing:old" }]), keep)).toBe(1);
    expect(await removedThings()).toEqual(["thing:old"]);
    kept();
  });

  test("leaves no versions of what it removes with them, though its class keeps them only since", async () => {
    const keep = (version: boolean) => a.alterClass(admin, THING.path, { kind: "set options", options: { version } });
    await keep(true);
    await a.insert(admin, THING.path, [{ id: "dead", size: 1 }]);
    await a.remove(admin, [{ id: "thing:dead" }]);
    await keep(false);
    const both = [{ id: "thing:old" }, { id: "thing:dead" }];
    expect(
      await acrossStop(
        () => b.remove(admin, both, { withVersions: true }),
        () => keep(true),
      ),
    ).toBe(2);
    expect(await removedThings()).toEqual([]);
    kept();
  });

  test("adds to records what an index asks for that was made meanwhile", async () => {
    const index = () => a.alterClass(admin, LINE.path, { kind: "add index", name: "color" });
    const [id = ""] = await acrossStop(() => b.insert(admin, LINE.path, [{ color: "red" }]), index, "append");
    const { objects } = await engine.tenant("matrix");
    const [record] = await objects.getRecords([{ cid: await cidOf(LINE.path), id: id.slice("line:".length) }]);
    expect(record?.terms).toEqual([`a${await columnNumber(LINE.path, "color")}=red`]);
    kept();
  });

  test("adds it to a record that it writes anew after a removal, too", async () => {
    const index = () => a.alterClass(admin, LINE.path, { kind: "add index", name: "color" });
    const [id = ""] = await a.insert(admin, LINE.path, [{ color: "red" }]);
    await a.remove(admin, [{ id }]);
    const anew = () => b.insert(admin, LINE.path, [{ id, color: "red" }], { rewrites: true });
    await acrossStop(anew, index, "append");
    const { objects } = await engine.tenant("matrix");
    const [record] = await objects.getRecords([{ cid: await cidOf(LINE.path), id: id.slice("line:".length) }]);
    expect(record?.terms).toEqual([`a${await columnNumber(LINE.path, "color")}=red`]);
    kept();
  });

  test("does not say ok to a value of a column that was dropped, nor of another one of that name", async () => {
    const drop = () => a.alterClass(admin, THING.path, { kind: "drop column", name: "size" });
    await expect(acrossStop(() => b.insert(admin, THING.path, [{ id: "new", size: 7 }]), drop)).rejects.toMatchObject({
      code: "conflict",
    });
    await a.alterClass(admin, THING.path, { kind: "add column", column: { name: "size", type: "varchar" } });
    const swap = async () => {
      await a.alterClass(admin, THING.path, { kind: "drop column", name: "size" });
      await a.alterClass(admin, THING.path, { kind: "add column", column: { name: "size", type: "int" } });
    };
    const update = () => b.update(admin, { id: "thing:old" }, [{ column: "size", operation: "set", value: "big" }]);
    await expect(acrossStop(update, swap)).rejects.toMatchObject({ code: "conflict" });
    expect(await b.get(admin, [{ id: "thing:old" }])).toMatchObject([{ values: { color: "red" } }]);
    kept();
  });

  test("is not disturbed by what does not concern its write", async () => {
    const add = () =>
      a.alterClass(admin, THING.path, { kind: "add column", column: { name: "weight", type: "double" } });
    expect(await acrossStop(() => b.insert(admin, THING.path, [{ id: "new", size: 7 }]), add)).toEqual(["thing:new"]);
    await b.update(admin, { id: "thing:new" }, [{ column: "weight", operation: "set", value: 2.5 }]);
    expect(await a.get(admin, [{ id: "thing:new" }])).toMatchObject([{ values: { size: 7, weight: 2.5 } }]);
    kept();
  });

  test("leaves nothing in a class that was dropped meanwhile, and nothing in the new one of that path", async () => {
    const before = await cidOf(LINE.path);
    await a.remove(admin, [{ id: "thing:old" }]);
    const old = await cidOf(THING.path);
    const again = async () => {
      await a.dropClass(admin, THING.path);
      await a.createClass(admin, THING);
    };
    await expect(
      acrossStop(() => b.insert(admin, THING.path, [{ id: "new", color: "red" }]), again),
    ).rejects.toMatchObject({ code: "conflict" });
    await expect(
      acrossStop(
        () => b.insert(admin, LINE.path, [{ color: "red" }]),
        () => a.dropClass(admin, LINE.path),
        "append",
      ),
    ).rejects.toMatchObject({ code: "conflict" });
    const { objects } = await engine.tenant("matrix");
    expect(await objects.get([{ cid: old, id: "new" }])).toEqual([undefined]);
    expect((await objects.timeline({ cid: before, fromMs: 0, toMs: 2 ** 47 }, { limit: 10 })).items).toEqual([]);
    expect(await readAll({}, b)).toEqual([]);
    expect(await b.insert(admin, THING.path, [{ id: "new", color: "blue" }])).toEqual(["thing:new"]);
    expect(await readAll({ where: [{ kind: "equals", column: "color", values: ["blue"] }] }, a)).toHaveLength(1);
    kept();
  });

  test("reads by the definitions of now, even before any of its timers could tell it that its lease is over", async () => {
    await stores.stop();
    await a.alterClass(admin, THING.path, { kind: "drop index", name: "color" });
    await a.insert(admin, THING.path, [{ id: "new", color: "green" }]);
    const where = [{ kind: "equals" as const, column: "color", values: ["green"] }];
    const reading = readAll({ where }, b);
    stores.goOn();
    expect((await reading).map((row) => row.id)).toContain("thing:new");
    kept();
  });
});

describe("a change of definitions", () => {
  test("waits for a write that began before it on another controller, and a class with a new object is not dropped", async () => {
    await a.remove(admin, [{ id: "thing:old" }]);
    const held = stores.hold("change");
    const writing = b.insert(admin, THING.path, [{ id: "new", size: 7 }]);
    const { goOn } = await held;
    let settled = false;
    const dropping = a.dropClass(admin, THING.path).finally(() => {
      settled = true;
    });
    dropping.catch(() => undefined);
    // The mark is there, so the change was made and new writes are refused. The attempted row fits no class, so the
    // class never gets an object.
    await expect
      .poll(
        () => a.insert(admin, THING.path, [{ id: "late", nowhere: 1 }]).catch((error: { code?: string }) => error.code),
        { timeout: 30_000 },
      )
      .toBe("unavailable");
    expect(settled).toBe(false);
    goOn();
    expect(await writing).toEqual(["thing:new"]);
    await expect(dropping).rejects.toMatchObject({ code: "conflict" });
    expect(await b.insert(admin, THING.path, [{ id: "more" }])).toEqual(["thing:more"]);
    kept();
  });

  test("does not wait for a controller that was stopped while it acknowledged the one before", async () => {
    await a.remove(admin, [{ id: "thing:old" }]);
    const acknowledging = stores.hold("txn");
    const adding = a.alterClass(admin, THING.path, { kind: "add column", column: { name: "weight", type: "double" } });
    const { goOn } = await acknowledging;
    await stores.stop();
    goOn();
    await adding;
    for (const name of ["height", "depth"])
      await a.alterClass(admin, THING.path, { kind: "add column", column: { name, type: "double" } });
    await a.dropClass(admin, THING.path);
    stores.goOn();
    await expect(b.insert(admin, THING.path, [{ id: "new" }])).rejects.toMatchObject({ code: "not_found" });
    kept();
  });

  test("is known to every other controller when it resolves", async () => {
    for (let at = 0; at < 10; at++) {
      await a.createClass(admin, { path: `/matrix/fresh${at}`, columns: [{ name: "x", type: "int" }] });
      expect(await b.insert(admin, `/matrix/fresh${at}`, [{ x: at }])).toHaveLength(1);
    }
    kept();
  });

  test("that takes something away gives up when another controller lives and does not acknowledge; one that adds does not need it", async () => {
    const clock = new TestClock(realClock.nowMs());
    const impatient = controller(engine, clock);
    await a.remove(admin, [{ id: "thing:old" }]);
    await impatient.catalog(admin);
    const held = stores.hold("change");
    const writing = b.insert(admin, LINE.path.replace("line", "thing"), [{ id: "slow" }]);
    const { goOn } = await held;
    const timers = clock.waiting;
    const dropping = impatient.dropClass(admin, THING.path);
    dropping.catch(() => undefined);
    await expect.poll(() => clock.waiting, { timeout: 30_000 }).toBeGreaterThan(timers);
    await expect
      .poll(() => a.insert(admin, THING.path, [{ id: "late" }]).catch((error: { code?: string }) => error.code), {
        timeout: 30_000,
      })
      .toBe("unavailable");
    clock.advance(CATALOG_ACKNOWLEDGE_DEADLINE_MS);
    await expect(dropping).rejects.toMatchObject({ code: "unavailable" });
    const timersLeft = clock.waiting;
    const adding = impatient.alterClass(admin, THING.path, {
      kind: "add column",
      column: { name: "weight", type: "double" },
    });
    await expect
      .poll(async () => (await a.catalog(admin)).get(THING.path)?.column("weight"), { timeout: 30_000 })
      .toBeDefined();
    // The definition is there before its controller knows, and waits for the other one.
    await expect.poll(() => clock.waiting, { timeout: 30_000 }).toBeGreaterThan(timersLeft);
    clock.advance(CATALOG_ACKNOWLEDGE_DEADLINE_MS);
    expect((await adding).column("weight")).toBeDefined();
    goOn();
    expect(await writing).toEqual(["thing:slow"]);
    await impatient.close();
    kept();
  });

  test("that was begun by a controller which went away leaves the class as it was", async () => {
    const { kv } = await engine.tenant("matrix");
    const gone = new TenantCatalog({
      kv,
      runtime: { ...testRuntime(realClock), random: seededRandom(99) },
      owners: new Map(),
    });
    await gone.open();
    await gone.acknowledged(await gone.change((draft) => draft.markDropping(THING.path)));
    await expect(b.insert(admin, THING.path, [{ id: "new" }])).rejects.toMatchObject({ code: "unavailable" });
    await gone.close();
    await expect
      .poll(() => b.insert(admin, THING.path, [{ id: "new" }]).catch(() => "refused"), { timeout: 30_000 })
      .toEqual(["thing:new"]);
    kept();
  });

  test("of an index is followed by readers before writers stop to keep it", async () => {
    const held = stores.hold("change");
    const writing = b.insert(admin, THING.path, [{ id: "slow", color: "green" }]);
    const { goOn } = await held;
    const dropping = a.alterClass(admin, THING.path, { kind: "drop index", name: "color" });
    await expect
      .poll(
        async () =>
          (
            await a.explain(admin, {
              class: THING.path,
              subtree: false,
              where: [{ kind: "equals", column: "color", values: ["red"] }],
            })
          ).used,
        {
          timeout: 30_000,
        },
      )
      .toEqual([]);
    // Another controller may still query by the index, so it holds what is written now.
    await a.insert(admin, THING.path, [{ id: "meanwhile", color: "green" }]);
    expect(await borneBy(`a${await columnNumber(THING.path, "color")}=green`)).toEqual(["meanwhile"]);
    goOn();
    await writing;
    expect((await dropping).column("color")?.indexed).toBe(false);
    kept();
  });
});

test("a word that is dropped by a controller which dies right then stays with another column that got it meanwhile", async () => {
  const path = "/matrix/note";
  const columns = [
    { name: "one", type: "text" as const },
    { name: "two", type: "text" as const },
  ];
  await a.createClass(admin, { path, columns, options: { keyMode: "manu", autosearch: true } });
  const longAgoMs = realClock.nowMs() - 60_000;
  await a.insert(admin, path, [{ id: "n", one: "disk" }], { atMs: longAgoMs });
  const behind = controller(engine, { ...realClock, nowMs: () => realClock.nowMs() - 5_000 });
  const dropping = stores.hold("change");
  const emptied = b.update(admin, { id: "note:n" }, [{ column: "one", operation: "set", value: "" }]);
  const drop = await dropping;
  await behind.update(admin, { id: "note:n" }, [{ column: "two", operation: "set", value: "disk" }]);
  const dying = stores.hold("trace");
  drop.goOn();
  const { goOn } = await dying;
  expect(await readAll({ class: path, where: [{ kind: "words", words: ["disk"] }] }, a)).toHaveLength(1);
  goOn();
  await emptied;
  await behind.close();
});

test("an upsert whose time was settled before loses to what is newer and to a removal, on whichever controller it comes again", async () => {
  const nowMs = realClock.nowMs();
  const upsert = {
    values: { id: "k", size: 1, color: "red" },
    timeMs: nowMs,
    identity: "s/1",
    writeUs: (nowMs - 10_000) * 1_000,
  };
  await a.ingest(admin, THING.path, [upsert]);
  await b.update(admin, { id: "thing:k" }, [{ column: "size", operation: "set", value: 2 }]);
  await a.ingest(admin, THING.path, [upsert]);
  expect(await b.get(admin, [{ id: "thing:k" }])).toMatchObject([{ values: { size: 2, color: "red" } }]);
  expect(await a.remove(admin, [{ id: "thing:k" }])).toBe(1);
  await b.ingest(admin, THING.path, [upsert]);
  expect(await b.get(admin, [{ id: "thing:k" }])).toEqual([undefined]);
  await b.insert(admin, THING.path, [{ id: "k" }]);
  expect((await a.get(admin, [{ id: "thing:k" }]))[0]?.values).toEqual({});
});
