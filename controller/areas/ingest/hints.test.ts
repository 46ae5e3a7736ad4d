import { beforeEach, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import {
  INGEST_HINT_KEPT_MS,
  INGEST_HINTS_HOSTS_MAX,
  INGEST_HINTS_MS,
  INGEST_HINTS_STREAMS_MAX,
  KV_TXN_MAX_OPERATIONS,
} from "../../../common/limits.ts";
import { MemoryStores } from "../../../test/helpers/engines/memory/stores.ts";
import { testRuntime, TestClock } from "../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores } from "../../store/engine.ts";
import { decodeStored } from "../../store/format.ts";
import type { KvTxn } from "../../store/kv.ts";
import { Hints } from "./hints.ts";

const SOURCE = { tenant: "matrix", host: "web-1", streamId: "stream-1" };

let clock: TestClock;
let stores: MemoryStores;
/** Transactions that were written, in order. */
let written: KvTxn[];
let isAway: boolean;

beforeEach(() => {
  clock = new TestClock();
  stores = new MemoryStores();
  written = [];
  isAway = false;
});

/** The hints of one controller. */
function hints(): Hints {
  const watched: Stores = {
    system: () => stores.system(),
    tenant: async (name) => {
      const store = await stores.tenant(name);
      const txn = (request: KvTxn) => {
        written.push(request);
        return isAway ? Promise.reject(new AppError("unavailable", "away")) : store.kv.txn(request);
      };
      return { ...store, kv: wrappedKv(store.kv, { txn }) };
    },
  };
  return new Hints({ stores: watched, runtime: testRuntime(clock) });
}

async function stored(host = SOURCE.host, tenant = SOURCE.tenant): Promise<[string, number][]> {
  const entry = await (await stores.tenant(tenant)).kv.get(`ingest/${host}`);
  return entry ? decodeStored<[string, number][]>(entry.value) : [];
}

/** The next round, once `count` writes were made in all. */
async function round(count: number): Promise<void> {
  await expect.poll(() => clock.waiting, { timeout: 30_000 }).toBe(1);
  clock.advance(INGEST_HINTS_MS);
  await expect.poll(() => written.length, { timeout: 30_000 }).toBe(count);
}

test("a stream that is read from the store again is no later one than those that came meanwhile", async () => {
  const one = hints();
  const stream = (at: number) => ({ ...SOURCE, streamId: `stream-${at}` });
  for (let at = 0; at < INGEST_HINTS_STREAMS_MAX; at++) one.note(stream(at), 1);
  clock.advance(INGEST_HINTS_MS);
  await expect.poll(stored, { timeout: 30_000 }).toHaveLength(INGEST_HINTS_STREAMS_MAX);
  // More than are kept: the first ones are known by the store alone.
  for (let at = 0; at < 3; at++) one.note(stream(INGEST_HINTS_STREAMS_MAX + at), 1);
  expect(await one.acknowledged(stream(0))).toBe(1);
  expect(await one.acknowledged(stream(INGEST_HINTS_STREAMS_MAX + 2))).toBe(1);
  await one.close();
  expect(await stored()).toEqual(Array.from({ length: INGEST_HINTS_STREAMS_MAX }, (_, at) => [`stream-${at + 3}`, 1]));
});

test("how far a stream is safe is known at once here, after a while everywhere, and never goes back", async () => {
  const [one, two] = [hints(), hints()];
  expect(await one.acknowledged(SOURCE)).toBe(0);
  one.note(SOURCE, 5);
  one.note(SOURCE, 3);
  expect([await one.acknowledged(SOURCE), await two.acknowledged(SOURCE)]).toEqual([5, 0]);
  await round(1);
  await expect.poll(stored, { timeout: 30_000 }).toEqual([[SOURCE.streamId, 5]]);
  expect(await two.acknowledged(SOURCE)).toBe(5);
  expect(await two.acknowledged({ ...SOURCE, tenant: "zion" })).toBe(0);
  one.note(SOURCE, 4);
  expect(await one.acknowledged(SOURCE)).toBe(5);
  await Promise.all([one.close(), two.close()]);
});

test("what came of many hosts is one write in a while, each for as long as one is kept, and none when nothing came", async () => {
  const one = hints();
  for (let at = 0; at < KV_TXN_MAX_OPERATIONS + 1; at++) one.note({ ...SOURCE, host: `h${at}` }, 1);
  await round(1);
  await round(2);
  expect(written.map(({ then }) => then.length)).toEqual([KV_TXN_MAX_OPERATIONS, 1]);
  const expiresAtMs = clock.nowMs() + INGEST_HINT_KEPT_MS;
  expect(written[1]?.then).toMatchObject([{ kind: "put", key: `ingest/h${KV_TXN_MAX_OPERATIONS}`, expiresAtMs }]);
  await expect.poll(() => clock.waiting, { timeout: 30_000 }).toBe(0);
  one.note(SOURCE, 1);
  await round(3);
  await one.close();
});

test("what cannot be written waits for the store, but at the end not for ever", async () => {
  const one = hints();
  one.note(SOURCE, 7);
  isAway = true;
  await round(1);
  isAway = false;
  await round(2);
  await expect.poll(stored, { timeout: 30_000 }).toEqual([[SOURCE.streamId, 7]]);
  one.note(SOURCE, 8);
  isAway = true;
  await one.close();
  expect(await stored()).toEqual([[SOURCE.streamId, 7]]);
  expect(clock.waiting).toBe(0);
});

test("at the end all is written that waits, of every tenant", async () => {
  const one = hints();
  one.note(SOURCE, 7);
  one.note({ ...SOURCE, tenant: "zion" }, 9);
  await one.close();
  expect([await stored(), await stored("web-1", "zion")]).toEqual([[[SOURCE.streamId, 7]], [[SOURCE.streamId, 9]]]);
});

test("nothing is known any more of a host that was removed, nor of the hosts of a tenant that is gone", async () => {
  const one = hints();
  const others = [
    { ...SOURCE, host: "web-2" },
    { ...SOURCE, tenant: "zion" },
  ] as const;
  for (const source of [SOURCE, ...others]) one.note(source, 3);
  await one.close();
  for (const source of [SOURCE, ...others]) one.note(source, 4);
  await one.forget(SOURCE);
  one.leave("zion");
  await one.close();
  expect([await stored(), await stored("web-2"), await stored("web-1", "zion")]).toEqual([
    [],
    [[SOURCE.streamId, 4]],
    [[SOURCE.streamId, 3]],
  ]);
  expect(await one.acknowledged(SOURCE)).toBe(0);
});

test("of so many hosts something is known and no more: the one that was quiet for the longest goes", async () => {
  const one = hints();
  const host = (at: number) => ({ ...SOURCE, host: `h${at}` });
  isAway = true;
  for (let at = 0; at < INGEST_HINTS_HOSTS_MAX; at++) one.note(host(at), 1);
  one.note(host(0), 2);
  one.note(host(INGEST_HINTS_HOSTS_MAX), 1);
  expect([await one.acknowledged(host(0)), await one.acknowledged(host(2))]).toEqual([2, 1]);
  expect(await one.acknowledged(host(1))).toBe(0);
  await one.close();
});
