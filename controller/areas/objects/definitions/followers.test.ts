import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { CATALOG_LEASE_MS } from "../../../../common/limits.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { openTestEngine } from "../../../../test/helpers/engines/engine.ts";
import { MemoryDatabase } from "../../../../test/helpers/engines/memory/engine.ts";
import { TestClock, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import { encodeJson } from "../../../store/format.ts";
import type { KvStore } from "../../../store/kv.ts";
import { Followers, type Follower } from "./followers.ts";

const NEVER = new AbortController().signal;

/** Calls that write, and events that watchers were handed. */
interface Counts {
  puts: number;
  events: number;
}

function counted(kv: KvStore, counts: Counts): KvStore {
  return wrappedKv(kv, {
    put: (...call) => {
      counts.puts++;
      return kv.put(...call);
    },
    watch: async function* (...call) {
      for await (const events of kv.watch(...call)) {
        counts.events += events.length;
        yield events;
      }
    },
  });
}

test("256 controllers serve a tenant, each under a number of its own; one more is refused", async () => {
  await using engine = await openTestEngine();
  const { kv } = await engine.tenant("matrix");
  const lease = await kv.lease(CATALOG_LEASE_MS);
  const others = Array.from({ length: 252 }, (_, at) => at);
  for (const numbers of [others.slice(0, 84), others.slice(84, 168), others.slice(168)]) {
    const value = encodeJson({ revision: 1 });
    const then = numbers.map((number) => ({ kind: "put" as const, key: `objectfollowers/${number}`, value }));
    await kv.txn({ if: [], then: then.map((put) => ({ ...put, lease: lease.id })) });
  }
  const followers = new Followers(kv, { ...testRuntime(realClock), random: seededRandom(1) });
  const numbers: number[] = [];
  for (let count = 0; count < 4; count++) numbers.push((await followers.join(lease)).number);
  expect(numbers.sort((a, b) => a - b)).toEqual([252, 253, 254, 255]);
  await expect(followers.join(lease)).rejects.toMatchObject({
    code: "unavailable",
    details: { limit: "CATALOG_FOLLOWERS_MAX" },
  });
  await lease.revoke();
});

test("controllers that start at once hardly ever try the same number", async () => {
  const clock = new TestClock();
  const database = new MemoryDatabase(clock);
  database.create("matrix");
  const counts = { puts: 0, events: 0 };
  const joined = await Promise.all(
    Array.from({ length: 100 }, async (_, at) => {
      const kv = counted((await database.engine({ clock }).tenant("matrix")).kv, counts);
      const runtime = { ...testRuntime(clock), random: seededRandom(at + 1) };
      return new Followers(kv, runtime).join(await kv.lease(CATALOG_LEASE_MS));
    }),
  );
  expect(new Set(joined.map(({ number }) => number)).size).toBe(100);
  // From the first number on it would be 5,050.
  expect(counts.puts).toBeLessThan(400);
});

test("a change waits for each of a hundred that live, for one that died no longer than its lease, and only who changed hears of it", async () => {
  const clock = new TestClock();
  const dead = new TestClock();
  const database = new MemoryDatabase(clock);
  database.create("matrix");
  const counts = { puts: 0, events: 0 };
  const join = async (at: number, by: TestClock): Promise<{ followers: Followers; follower: Follower }> => {
    const kv = counted((await database.engine({ clock: by }).tenant("matrix")).kv, counts);
    const followers = new Followers(kv, { ...testRuntime(by), random: seededRandom(at + 1) });
    return { followers, follower: await followers.join(await kv.lease(CATALOG_LEASE_MS)) };
  };
  const living = await Promise.all(Array.from({ length: 100 }, (_, at) => join(at, clock)));
  await join(100, dead);
  const [changing, ...others] = living;
  if (changing === undefined) throw new RangeError("somebody changes");
  const revision = 1_000_000;
  let isDone: boolean | undefined;
  const done = changing.followers.acknowledged(revision, changing.follower.key, NEVER).then((all) => (isDone = all));
  await turn();
  for (const { followers, follower } of others) await followers.acknowledge(follower, revision);
  await turn();
  expect(isDone).toBeUndefined();
  expect(counts.events).toBe(99);
  // The clock of the dead one stands, so nothing keeps its lease alive.
  for (let passedMs = 0; passedMs <= CATALOG_LEASE_MS; passedMs += CATALOG_LEASE_MS / 8) {
    clock.advance(CATALOG_LEASE_MS / 8);
    await turn();
  }
  expect(await done).toBe(true);
  expect(counts.events).toBe(100);
});
