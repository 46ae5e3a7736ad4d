import { expect, test } from "vitest";
import { KV_TXN_MAX_OPERATIONS } from "../../../../../common/limits.ts";
import { TestClock } from "../../../../../test/helpers/time/runtime.ts";
import { KvSweep } from "../../../kv/sweep.ts";
import { again, bytes, put, uniqueName } from "../../harness.ts";
import { changesOf, collect, listAll, tell, told } from "../reading.ts";
import type { ExpirySubject } from "./subject.ts";

const SWEEP_STEPS_MAX = 1_000;

/** Lists and sweeps over expired entries. */
export function expiredListsContract({ now, later, expiring }: ExpirySubject): void {
  test("a list leaves expired entries out of its pages and goes on behind them", async () => {
    const prefix = uniqueName("list") + "/";
    for (const at of [0, 1, 2, 3, 4, 5, 6, 7, 8]) {
      if (at % 3 === 0) await put(now(), prefix + at, bytes("lasting"));
      else await expiring(prefix + at);
    }
    const lasting = [0, 3, 6].map((at) => prefix + at);
    expect((await listAll(later(), prefix, 2)).map((entry) => entry.key)).toEqual(lasting);
    expect((await listAll(now(), prefix, 100)).map((entry) => entry.key)).toEqual(lasting);
  });

  test("a list of more expired entries than one transaction takes removes them all", async () => {
    const prefix = uniqueName("many") + "/";
    const keys = Array.from({ length: KV_TXN_MAX_OPERATIONS + 1 }, (_, at) => prefix + at);
    await Promise.all(keys.map((key) => expiring(key)));
    expect(await listAll(later(), prefix, 1_000)).toEqual([]);
    expect(await listAll(now(), prefix, 1_000)).toEqual([]);
  });

  test("a sweep removes expired entries that are not read, and no others", async () => {
    const prefix = uniqueName("sweep") + "/";
    for (const at of [0, 1, 2, 3, 4]) await expiring(prefix + at);
    await put(now(), `${prefix}lasting`, bytes("lasting"));
    const sweep = new KvSweep({ kv: later(), runtime: { clock: new TestClock() } });
    let left = await listAll(now(), prefix, 10);
    expect(left).toHaveLength(6);
    for (let step = 0; step < SWEEP_STEPS_MAX && left.length > 1; step++) {
      await again(() => sweep.step());
      left = await listAll(now(), prefix, 10);
    }
    expect(left.map((entry) => entry.key)).toEqual([`${prefix}lasting`]);
    await sweep.close();
  });
}

/** Watches report an expiry. */
export function expiryWatchesContract({ now, later, expiring }: ExpirySubject): void {
  test("a watch from the revision of such a page misses nothing", async () => {
    const prefix = uniqueName("page") + "/";
    const { key } = await expiring(`${prefix}a`);
    const { revision } = await again(() => later().list(prefix));
    await put(now(), key, bytes("new"));
    const events = await collect(now(), prefix, { since: revision, until: told(`${key}=new`) });
    expect(new Set(events.map(tell).filter((line) => line !== `${key} gone`))).toEqual(new Set([`${key}=new`]));
  });

  test("a watch tells of the expiry as a delete before the next life", async () => {
    const prefix = uniqueName("watch") + "/";
    const { revision } = await again(() => now().list(prefix));
    const { key, expiresAtMs } = await expiring(`${prefix}a`);
    await put(later(), key, bytes("new"));
    const events = await collect(now(), prefix, { since: revision, until: told(`${key}=new`) });
    expect(changesOf(events)).toEqual([`${key}=old`, `${key} gone`, `${key}=new`]);
    expect(events[0]).toMatchObject({ kind: "put", entry: { expiresAtMs } });
  });
}
