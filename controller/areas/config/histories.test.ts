import { afterAll, beforeAll, expect, test } from "vitest";
import { AppError, isAppError } from "../../../common/errors.ts";
import { CONFIG_HISTORY_MAX_ENTRIES } from "../../../common/limits.ts";
import { realClock, seededRandom } from "../../../test/helpers/clock.ts";
import { configWorld } from "../../../test/helpers/config.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engine.ts";
import { prove } from "../../../test/helpers/evidence.ts";
import {
  expiringRegister,
  isLinearizable,
  type Operation,
  type RegisterCall,
} from "../../../test/helpers/linearizable.ts";
import { testPrincipal } from "../../../test/helpers/runtime.ts";
import { wrappedKv } from "../../../test/helpers/wrapped-kv.ts";
import { faulty } from "../../store/faulty.ts";
import type { Stores } from "../../store/engine.ts";
import { ConfigHistory } from "./history.ts";
import { ConfigService } from "./service.ts";

/** Several clients at two controllers on few keys, over stores that lose calls and answers. */

const CLIENTS = 6;
const CALLS = onCluster ? 25 : 40;
const admin = testPrincipal();

let engine: TestEngine;
beforeAll(async () => {
  engine = await openTestEngine();
});
afterAll(() => engine[Symbol.asyncDispose]());

type Recorded = Operation<RegisterCall>;

/** One client's calls, one after the other; what was refused for sure is not among them. */
async function client(config: ConfigService, keys: readonly string[], seed: number): Promise<Map<string, Recorded[]>> {
  const random = seededRandom(seed);
  const made = new Map<string, Recorded[]>(keys.map((key) => [key, []]));
  for (let at = 0; at < CALLS; at += 1) {
    const key = keys[Math.floor(random.next() * keys.length)] ?? "";
    const recorded = await call(config, key, { value: `${seed}.${at}`, chance: random.next() });
    if (recorded) made.get(key)?.push(recorded);
  }
  return made;
}

const TTL_SECONDS = 1;

async function call(
  config: ConfigService,
  key: string,
  { value, chance }: { readonly value: string; readonly chance: number },
): Promise<Recorded | undefined> {
  const invokedMs = realClock.nowMs();
  const done = (what: RegisterCall): Recorded => ({ what, invokedMs, returnedMs: realClock.nowMs() + 1 });
  try {
    if (chance < 0.4) return done({ kind: "get", value: await valueOf(config, key) });
    if (chance < 0.6) return done({ kind: "delete", found: await isRemoved(config, key) });
    const ttl = chance < 0.75 ? { ttlSeconds: TTL_SECONDS } : {};
    await config.set(admin, { key, value, ...ttl });
    return done({ kind: "set", value, ...(chance < 0.75 && { ttlMs: TTL_SECONDS * 1_000 }) });
  } catch (error) {
    if (isAppError(error, "unavailable", "conflict")) return undefined;
    if (!isAppError(error, "unknown_outcome")) throw error;
    if (chance < 0.4) return undefined;
    if (chance < 0.6) return { invokedMs, what: { kind: "delete", found: true } };
    return { invokedMs, what: { kind: "set", value, ...(chance < 0.75 && { ttlMs: TTL_SECONDS * 1_000 }) } };
  }
}

async function valueOf(config: ConfigService, key: string): Promise<string | undefined> {
  try {
    return (await config.tree(admin, key)).value;
  } catch (error) {
    if (isAppError(error, "not_found")) return undefined;
    throw error;
  }
}

async function isRemoved(config: ConfigService, key: string): Promise<boolean> {
  try {
    return (await config.remove(admin, key)) > 0;
  } catch (error) {
    if (isAppError(error, "not_found")) return false;
    throw error;
  }
}

test.each([1, 2, 3, 4])("what clients at two controllers saw can have happened one by one (seed %i)", async (seed) => {
  const keys = ["a", "b", "c"].map((name) => `/matrix/linear/${seed}/${name}`);
  const worlds = [1, 2].map((n) => configWorld(faulty(engine, { random: seededRandom(seed * 10 + n) })));
  const services = worlds.map((world) => new ConfigService(world));
  const clients = Array.from({ length: CLIENTS }, (_, at) => client(services[at % 2]!, keys, seed * 100 + at));
  const made = await Promise.all(clients);
  let calls = 0;
  for (const key of keys) {
    const history = made.flatMap((one) => one.get(key) ?? []);
    calls += history.length;
    expect(isLinearizable(history, expiringRegister()), `${key}\n${JSON.stringify(history)}`).toBe(true);
  }
  for (const world of worlds) await world[Symbol.asyncDispose]();
  prove("config-linearizable", { engine: engine.kind, seed, clients: CLIENTS, controllers: 2, calls });
});

test("of writes at two controllers at once every one has a version of its own, without a gap", async () => {
  const key = "/matrix/linear/versions";
  const worlds = [1, 2].map(() => configWorld(engine));
  const writes = CONFIG_HISTORY_MAX_ENTRIES - 10;
  await Promise.all(
    Array.from({ length: writes }, (_, at) =>
      new ConfigService(worlds[at % 2]!).set(admin, { key, value: String(at) }).catch((error: unknown) => {
        // Two controllers that race may lose to each other more often than they try.
        if (!isAppError(error, "conflict")) throw error;
      }),
    ),
  );
  const versions = await new ConfigHistory(worlds[0]!).history(admin, key);
  expect(versions.map(({ version }) => version)).toEqual(versions.map((_, at) => versions.length - at));
  expect(new Set(versions.map(({ value }) => value)).size).toBe(versions.length);
  expect(await valueOf(new ConfigService(worlds[1]!), key)).toBe(versions[0]?.value);
  for (const world of worlds) await world[Symbol.asyncDispose]();
});

test("a key that came and went while another controller was about to make it keeps the versions of both", async () => {
  const key = "/matrix/linear/between";
  const quick = configWorld(engine);
  const service = new ConfigService(quick);
  let isFirst = true;
  const slowStores: Stores = {
    system: () => engine.system(),
    async tenant(name) {
      const store = await engine.tenant(name);
      const txn: typeof store.kv.txn = async (request) => {
        if (isFirst) {
          isFirst = false;
          await service.set(admin, { key, value: "between" });
          await service.remove(admin, key);
        }
        return store.kv.txn(request);
      };
      return { ...store, kv: wrappedKv(store.kv, { txn }) };
    },
  };
  const slow = configWorld(slowStores);
  await new ConfigService(slow).set(admin, { key, value: "last" });
  expect(await new ConfigHistory(quick).history(admin, key)).toMatchObject([
    { version: 3, value: "last" },
    { version: 2, deleted: true },
    { version: 1, value: "between" },
  ]);
  for (const world of [quick, slow]) await world[Symbol.asyncDispose]();
});

test("a write whose answer was lost is done once, and told so", async () => {
  const key = "/matrix/linear/lost";
  let answersLost = 2;
  const stores: Stores = {
    system: () => engine.system(),
    async tenant(name) {
      const store = await engine.tenant(name);
      const txn: typeof store.kv.txn = async (request) => {
        const answer = await store.kv.txn(request);
        if ((answersLost -= 1) >= 0) throw new AppError("unknown_outcome", "lost");
        return answer;
      };
      return { ...store, kv: wrappedKv(store.kv, { txn }) };
    },
  };
  const world = configWorld(stores);
  await new ConfigService(world).set(admin, { key, value: "once" });
  expect(await new ConfigHistory(world).history(admin, key)).toMatchObject([{ version: 1, value: "once" }]);
  await world[Symbol.asyncDispose]();
});
