import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { ROW_CHECK_AFTER_START_MS, ROW_CHECK_EVERY_MS, ROW_CHECK_EXAMPLES_MAX } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores, TenantStore } from "../../store/engine.ts";
import { storeDamaged } from "../../store/damage.ts";
import type { KvStore } from "../../store/kv.ts";
import type { DamagedRow, RowsRead, ScrubStore } from "../../store/scrub.ts";
import { RowCheckService } from "./row-checks.ts";

const admin = testPrincipal();
/** More damaged rows than are listed as examples. */
const MANY = ROW_CHECK_EXAMPLES_MAX + 5;
const damagedRow = (at: number): DamagedRow => ({ table: "objects", key: `2:${at}`, reason: "its checksum is wrong" });

let engine: TestEngine;
beforeAll(async () => {
  engine = await openTestEngine();
});
beforeEach(async () => {
  for (const { kv } of [await engine.system(), await engine.tenant("matrix")]) await kv.delete("rows/check");
});
afterAll(() => engine[Symbol.asyncDispose]());

type Rows = ScrubStore["rows"];

function storesWith(rows: Rows | undefined, kv?: KvStore): Stores {
  const wrapped = (store: TenantStore): TenantStore =>
    rows === undefined
      ? store
      : {
          ...store,
          scrub: new Proxy(store.scrub, {
            get: (of, name) => (name === "rows" ? rows : (Reflect.get(of, name) as unknown)),
          }),
        };
  return {
    system: () => engine.system(),
    tenant: async (name) => ({ ...wrapped(await engine.tenant(name)), ...(kv && { kv }) }),
  };
}

interface Shared {
  nowMs: number;
  /** Uptime of the controllers that a test makes. */
  ageMs: number;
  readonly alive: Set<string>;
  readonly logged: string[];
}

const shared = (): Shared => ({ nowMs: Date.now(), ageMs: ROW_CHECK_AFTER_START_MS, alive: new Set(), logged: [] });

/** A controller whose pauses take no time. */
function controller(own: string, of: Shared, rows?: Rows, kv?: KvStore) {
  of.alive.add(own);
  let isMade = false;
  const clock: Clock = {
    nowMs: () => of.nowMs,
    monotonicMs: () => performance.now() + (isMade ? of.ageMs : 0),
    after(_, callback) {
      const timer = setImmediate(callback);
      return () => clearImmediate(timer);
    },
  };
  const log = new Proxy(testRuntime().log, {
    get: (target, name) =>
      name === "error" ? (_: object, text: string) => of.logged.push(text) : (Reflect.get(target, name) as unknown),
  });
  const service = new RowCheckService({
    stores: storesWith(rows, kv),
    runtime: { ...testRuntime(clock), log },
    controllers: { own, has: (id) => of.alive.has(id) },
  });
  isMade = true;
  return service;
}

async function round(service: RowCheckService, of: Shared): Promise<void> {
  of.nowMs += ROW_CHECK_EVERY_MS;
  await service.maintain("matrix");
  await service.settled();
}

const pages =
  (all: readonly Omit<RowsRead, "cursor">[]): Rows =>
  ({ cursor = "0" }) => {
    const at = Number(cursor) + 1;
    return Promise.resolve({ ...all[at - 1]!, ...(at < all.length && { cursor: String(at) }) });
  };

test("a round reads every row of the tenant and of the installation, and the next one begins when it is due", async () => {
  const { kv, objects } = await engine.tenant("matrix");
  await kv.put("a", Buffer.from("value"));
  await objects.change([{ key: { cid: 2, id: "x" }, timeUs: Date.now() * 1_000, birth: true, addTerms: ["c2"] }]);
  const of = shared();
  const service = controller("one", of);
  await round(service, of);
  const { last, running, isLate } = await service.status(admin);
  expect([last?.damaged, running, isLate]).toEqual([0, undefined, false]);
  expect(last?.looked).toBeGreaterThan(0);
  expect(service.damaged()).toEqual([]);
  await service.maintain("matrix");
  expect((await service.status(admin)).running).toBeUndefined();
  of.nowMs += 3 * ROW_CHECK_EVERY_MS + 1;
  expect((await service.status(admin)).isLate).toBe(true);
  expect(service.longestAgeMs).toBe(3 * ROW_CHECK_EVERY_MS + 1);
  await expect(service.status({ ...admin, grants: [] })).rejects.toMatchObject({ code: "denied" });
  await service.close();
});

test("a controller that has just started begins no round, and tells what the last one found", async () => {
  const of = shared();
  const before = controller("before", of, pages([{ looked: 9, damaged: [damagedRow(1)] }]));
  await round(before, of);
  await before.close();
  of.ageMs = 0;
  const young = controller("young", of, pages([{ looked: 9, damaged: [] }]));
  await round(young, of);
  expect([young.damagedRows, (await young.status(admin)).running]).toEqual([1, undefined]);
  of.ageMs = ROW_CHECK_AFTER_START_MS;
  await round(young, of);
  expect(young.damagedRows).toBe(0);
  await young.close();
});

test("damaged rows are told in the log, the figures and the report until a whole round finds none", async () => {
  const of = shared();
  const damaged = Array.from({ length: MANY }, (_, at) => damagedRow(at));
  const bad = controller(
    "two",
    of,
    pages([
      { looked: 9, damaged },
      { looked: 1, damaged: [] },
    ]),
  );
  await round(bad, of);
  expect(of.logged.filter((text) => text === "a row is damaged")).toHaveLength(ROW_CHECK_EXAMPLES_MAX);
  expect(bad.damaged()).toEqual([{ tenant: "matrix", rows: MANY, tables: ["objects"] }]);
  expect(bad.damagedRows).toBe(MANY);
  expect((await bad.status(admin)).last).toMatchObject({
    looked: 10,
    damaged: MANY,
    tables: { objects: MANY },
    examples: damaged.slice(0, ROW_CHECK_EXAMPLES_MAX),
  });
  await bad.close();
  // Another controller reports the same from the recorded state.
  const good = controller("three", of, pages([{ looked: 9, damaged: [] }]));
  await good.maintain("matrix");
  expect(good.damagedRows).toBe(MANY);
  await round(good, of);
  expect(good.damaged()).toEqual([]);
  await good.close();
});

test("one controller at a time goes through a store; where it ended, another goes on from the noted place", async () => {
  const of = shared();
  const asked: string[] = [];
  const hanging = (): Promise<never> => new Promise(() => undefined);
  const first = controller("four", of, ({ cursor = "" }) => {
    asked.push(`four ${cursor}`);
    return cursor === "" ? Promise.reject(new AppError("unavailable", "away")) : hanging();
  });
  of.nowMs += ROW_CHECK_EVERY_MS;
  await first.maintain("matrix");
  await first.settled();
  const second = controller("five", of, ({ cursor = "" }) => {
    asked.push(`five ${cursor}`);
    return Promise.resolve(cursor === "" ? { looked: 1, damaged: [], cursor: "b" } : { looked: 2, damaged: [] });
  });
  await second.maintain("matrix");
  await second.settled();
  expect(asked).toEqual(["four "]);
  of.alive.delete("four");
  await second.maintain("matrix");
  await second.settled();
  expect(asked).toEqual(["four ", "five ", "five b"]);
  expect((await second.status(admin)).last).toMatchObject({ looked: 3 });
  await second.close();
});

test("an orderly stop notes the place, and the next controller goes on right there", async () => {
  const of = shared();
  const first = controller("six", of, ({ cursor = "0" }) => {
    if (cursor === "4") void first.close();
    return Promise.resolve({ looked: 1, damaged: [], cursor: String(Number(cursor) + 1) });
  });
  await round(first, of);
  await first.close();
  const asked: string[] = [];
  const second = controller("seven", of, ({ cursor = "", isPassing = false }) => {
    asked.push(`${cursor} ${isPassing}`);
    return Promise.resolve({ looked: 1, damaged: [] });
  });
  await second.maintain("matrix");
  await second.settled();
  expect(asked).toEqual(["5 false"]);
  expect((await second.status(admin)).last).toMatchObject({ looked: 6, damaged: 0 });
  await second.close();
});

test("a place at which controllers end again and again is passed by, and told", async () => {
  const of = shared();
  const asked: boolean[] = [];
  of.nowMs += ROW_CHECK_EVERY_MS;
  for (let at = 0; at < 4; at += 1) {
    const dying = controller(`dying ${at}`, of, ({ isPassing = false }) => {
      asked.push(isPassing);
      return new Promise(() => undefined);
    });
    await dying.maintain("matrix");
    of.alive.delete(`dying ${at}`);
  }
  const last = controller("eight", of, ({ isPassing = false }) => {
    asked.push(isPassing);
    const passed = { damaged: [damagedRow(0)], cursor: "behind" };
    return Promise.resolve({ looked: 0, damaged: [], ...(isPassing && passed) });
  });
  await last.maintain("matrix");
  await last.settled();
  expect(asked).toEqual([false, false, false, false, true, false]);
  expect(last.damaged()).toContainEqual({ tenant: "matrix", rows: 1, tables: ["objects"] });
  await last.close();
});

test("a place that another version noted begins the round anew", async () => {
  const of = shared();
  const asked: string[] = [];
  const service = controller("nine", of, ({ cursor = "" }) => {
    asked.push(cursor);
    if (cursor === "old") return Promise.reject(new AppError("invalid", "not a cursor of this version"));
    const isFirst = asked.length === 1;
    return Promise.resolve({ looked: 1, damaged: [], ...(isFirst && { cursor: "old" }) });
  });
  await round(service, of);
  expect(asked).toEqual(["", "old", ""]);
  expect((await service.status(admin)).last).toMatchObject({ looked: 1 });
  await service.close();
});

test("its own entry, when it is damaged, is told and does not keep the check from going on", async () => {
  const of = shared();
  const { kv } = await engine.tenant("matrix");
  await round(controller("one", of, pages([{ looked: 9, damaged: [] }])), of);
  const isSound = { now: false };
  const damagedKv = wrappedKv(kv, {
    get: async (key) => (isSound.now ? kv.get(key) : Promise.reject(storeDamaged("Its checksum is wrong."))),
    delete: async (...given) => {
      isSound.now = true;
      return kv.delete(...given);
    },
  });
  const service = controller("two", of, pages([{ looked: 9, damaged: [] }]), damagedKv);
  await round(service, of);
  expect(of.logged).toEqual(["a row is damaged"]);
  expect((await service.status(admin)).last).toMatchObject({ looked: 9, damaged: 0 });
  await service.close();
});
