import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import {
  CONFIG_CACHED_MAX_AGE_MS,
  CONFIG_CACHED_READS_MAX,
  CONFIG_CACHED_TREE_MAX_ENTRIES,
} from "../../../common/limits.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { configWorld } from "../../../test/helpers/areas/config.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores } from "../../store/engine.ts";
import type { KvEvent, KvStore, KvWatchOptions } from "../../store/kv.ts";
import { mapLimited } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import type { Clock } from "../../../common/time.ts";
import { MASK } from "./rights.ts";
import { ConfigService } from "./service.ts";

const admin = testPrincipal();
const neighbour = testPrincipal("administrator", "second");

let engine: TestEngine;
/** Writes without going through the caches under test. */
let other: ReturnType<typeof configWorld>;
let writer: ConfigService;
/** Key prefix of one test. */
let base = "";
let count = 0;

beforeAll(async () => {
  engine = await openTestEngine();
  other = configWorld(engine);
  writer = new ConfigService(other);
});
beforeEach(() => {
  base = `/matrix/cached${(count += 1)}`;
});
afterAll(async () => {
  await other[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

const set = (key: string, value: string) => writer.set(admin, { key, value });

/** The time of day advances by itself; a test advances the monotonic clock that ages reads. */
class AgeClock implements Clock {
  nowMs = realClock.nowMs;
  after = realClock.after;
  #ageMs = 0;

  monotonicMs(): number {
    return this.#ageMs;
  }

  advance(byMs: number): void {
    this.#ageMs += byMs;
  }
}

/** A controller with its cache, over a store that the test may alter. */
function reader(instead: (kv: KvStore) => Partial<KvStore> = () => ({})) {
  const stores: Stores = {
    system: () => engine.system(),
    async tenant(name) {
      const store = await engine.tenant(name);
      return { ...store, kv: wrappedKv(store.kv, instead(store.kv)) };
    },
  };
  const clock = new AgeClock();
  const world = configWorld(stores, { clock });
  const config = new ConfigService(world);
  return {
    clock,
    value: async (key: string, by = admin) => (await config.tree(by, key, { cached: true })).value,
    tree: (key: string, by = admin) => config.tree(by, key, { cached: true }),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

/** Opens once. */
class Gate {
  open: () => void = () => undefined;
  readonly opened = new Promise<void>((resolve) => (this.open = resolve));
}

/** A watch that reports nothing, so that a read ends only by age. `begun` opens when a watch starts. */
function deafWatch(begun: Gate) {
  return async function* (_prefix: string, { signal }: KvWatchOptions): AsyncGenerator<readonly KvEvent[]> {
    begun.open();
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  };
}

test("a cached read follows what another controller sets and deletes, however young it is", async () => {
  await using cached = reader();
  await set(`${base}/a`, "1");
  expect(await cached.value(`${base}/a`)).toBe("1");
  await set(`${base}/a`, "2");
  await expect.poll(() => cached.value(`${base}/a`), { timeout: 30_000 }).toBe("2");
  expect(await cached.tree(base)).toMatchObject({ nodes: [{ value: "2" }] });
  await set(`${base}/b/c`, "3");
  await expect.poll(async () => (await cached.tree(base)).nodes?.length, { timeout: 30_000 }).toBe(2);
  await writer.remove(admin, base);
  await expect
    .poll(() => cached.tree(base).catch((error: AppError) => error.code), { timeout: 30_000 })
    .toBe("not_found");
});

test("where the watch tells nothing, an answer is as old as it may be and no older", async () => {
  const begun = new Gate();
  await using cached = reader(() => ({ watch: deafWatch(begun) }));
  await set(`${base}/a`, "1");
  await cached.value(`${base}/a`);
  // The start of the watch drops reads made before it.
  await begun.opened;
  expect(await cached.value(`${base}/a`)).toBe("1");
  await set(`${base}/a`, "2");
  cached.clock.advance(CONFIG_CACHED_MAX_AGE_MS - 1);
  expect(await cached.value(`${base}/a`)).toBe("1");
  cached.clock.advance(1);
  expect(await cached.value(`${base}/a`)).toBe("2");
});

test("a change that is told while a read is under way is not covered by what was read", async () => {
  let held: Gate | undefined;
  const [arrived, told] = [new Gate(), new Gate()];
  await using cached = reader((kv) => ({
    async get(key) {
      const entry = await kv.get(key);
      if (held) arrived.open();
      await held?.opened;
      return entry;
    },
    async *watch(prefix, options) {
      for await (const events of kv.watch(prefix, options)) {
        yield events;
        // The generator continues only after its consumer has processed the yielded events.
        if (events.some((event) => event.kind === "put" && event.entry.key.endsWith(`${base}/a`))) told.open();
      }
    },
  }));
  await set(`${base}/other`, "0");
  await cached.value(`${base}/other`);
  await set(`${base}/other`, "1");
  // A first reported change proves that the watch runs.
  await expect.poll(() => cached.value(`${base}/other`), { timeout: 30_000 }).toBe("1");
  const slowly = (held = new Gate());
  const slow = cached.tree(`${base}/a`).catch((error: AppError) => error.code);
  await arrived.opened;
  held = undefined;
  await set(`${base}/a`, "1");
  await told.opened;
  slowly.open();
  await slow;
  expect(await cached.value(`${base}/a`)).toBe("1");
});

test("what has expired is not answered, however young the read", async () => {
  await using cached = reader();
  await writer.set(admin, { key: `${base}/short`, value: "x", ttlSeconds: 2 });
  const read = async (): Promise<number> => (await cached.tree(base).catch(() => undefined))?.nodes?.length ?? 0;
  expect(await read()).toBeLessThanOrEqual(1);
  await expect.poll(read, { timeout: 30_000 }).toBe(0);
});

test("a cached read shows secrets as their mask, and nothing to neighbours and to those without the right", async () => {
  await using cached = reader();
  await writer.set(admin, { key: `${base}/secret`, value: "hidden", secret: true });
  expect(await cached.value(`${base}/secret`)).toBe(MASK);
  await expect(cached.value(`${base}/secret`, neighbour)).rejects.toMatchObject({ code: "not_found" });
  await expect(cached.value(`${base}/secret`, { ...admin, grants: [] })).rejects.toMatchObject({ code: "denied" });
});

test("a store that is away is told, and asked again by the next call", async () => {
  let isAway = true;
  await using cached = reader((kv) => ({
    get: (key) => (isAway ? Promise.reject(new AppError("unavailable", "away")) : kv.get(key)),
  }));
  await set(`${base}/a`, "1");
  await expect(cached.value(`${base}/a`)).rejects.toMatchObject({ code: "unavailable" });
  isAway = false;
  expect(await cached.value(`${base}/a`)).toBe("1");
});

test("a tree too large to be kept is answered whole, as it is now", async () => {
  const begun = new Gate();
  await using cached = reader(() => ({ watch: deafWatch(begun) }));
  const keys = Array.from({ length: CONFIG_CACHED_TREE_MAX_ENTRIES + 1 }, (_, at) => ({
    key: `${base}/${at}`,
    text: "v",
  }));
  await other.changes.make(admin, keys);
  expect((await cached.tree(base)).nodes).toHaveLength(keys.length);
  await begun.opened;
  await cached.tree(base);
  await set(`${base}/more`, "v");
  expect((await cached.tree(base)).nodes).toHaveLength(keys.length + 1);
});

const READS_AT_ONCE = 64;

test("of more reads than are kept the oldest goes", async () => {
  const asked: string[] = [];
  const begun = new Gate();
  // Ten thousand reads of keys that are not there need no store.
  await using cached = reader(() => ({
    watch: deafWatch(begun),
    async get(key) {
      asked.push(key);
      return undefined;
    },
    list: async () => ({ entries: [], revision: 1 }),
  }));
  const read = (key: string) => cached.tree(key).catch(() => undefined);
  await read(`${base}/first`);
  await begun.opened;
  const others = Array.from({ length: CONFIG_CACHED_READS_MAX }, (_, at) => `${base}/${at}`);
  await mapLimited(others, READS_AT_ONCE, read);
  const before = asked.length;
  await read(`${base}/${CONFIG_CACHED_READS_MAX - 1}`);
  expect(asked).toHaveLength(before);
  await read(`${base}/0`);
  await read(`${base}/first`);
  expect(asked.slice(before)).toEqual([`config${base}/first`]);
});
