import { afterAll, beforeAll, expect, test } from "vitest";
import { AppError, isAppError } from "../../../common/errors.ts";
import { CONFIG_HISTORY_MAX_ENTRIES } from "../../../common/limits.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { ConfigClients, valueOf } from "../../../test/helpers/areas/config-clients.ts";
import { configWorld } from "../../../test/helpers/areas/config.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { prove } from "../../../test/helpers/runs/evidence.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import { faulty } from "../../store/faulty.ts";
import type { Stores } from "../../store/engine.ts";
import { ConfigHistory } from "./history.ts";
import { ConfigService } from "./service.ts";

/** Several clients write a few keys through two controllers, over stores that lose calls and answers. */

const CLIENTS = 6;
const CALLS = onCluster ? 25 : 40;
const admin = testPrincipal();

let engine: TestEngine;
beforeAll(async () => {
  engine = await openTestEngine();
});
afterAll(() => engine[Symbol.asyncDispose]());

test.each([1, 2, 3, 4])("what clients at two controllers saw can have happened one by one (seed %i)", async (seed) => {
  const keys = ["a", "b", "c"].map((name) => `/matrix/linear/${seed}/${name}`);
  const worlds = [1, 2].map((n) => configWorld(faulty(engine, { random: seededRandom(seed * 10 + n) })));
  const services = worlds.map((world) => new ConfigService(world));
  const clients = new ConfigClients({ services, keys, clients: CLIENTS, seed });
  await clients.make(CALLS);
  expect(clients.impossible()).toEqual([]);
  for (const world of worlds) await world[Symbol.asyncDispose]();
  prove("config-linearizable", {
    engine: engine.kind,
    seed,
    clients: CLIENTS,
    controllers: 2,
    calls: clients.tally.calls,
  });
});

test("of writes at two controllers at once every one has a version of its own, without a gap", async () => {
  const key = "/matrix/linear/versions";
  const worlds = [1, 2].map(() => configWorld(engine));
  const writes = CONFIG_HISTORY_MAX_ENTRIES - 10;
  await Promise.all(
    Array.from({ length: writes }, (_, at) =>
      new ConfigService(worlds[at % 2]!).set(admin, { key, value: String(at) }).catch((error: unknown) => {
        // Two racing controllers may lose to each other more often than they retry.
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
