import { describe, expect, test } from "vitest";
import { KV_TXN_MAX_OPERATIONS, KV_VALUE_MAX_BYTES } from "../../../common/limits.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import { KvSweep } from "../kv-sweep.ts";
import type { KvEntry, KvEvent, KvStore, KvTxn } from "../kv.ts";
import { again, bytes, type ContractSubject, put, remove, text, txn, uniqueName } from "./harness.ts";
import { collect, listAll, tell } from "./kv-reading.ts";

const MINUTE_MS = 60_000;
const LEASE_MS = 5_000;
/** Rounds of a race between a reader and a writer. */
const RACES = 40;
/** Number of changes of one key, and of those made in parallel. A store with real time is too slow for as many. */
const AGED = { changes: 10_000, atOnce: 100 };
const AGED_IN_REAL_TIME = { changes: 500, atOnce: 5 };
const SWEEP_STEPS_MAX = 1_000;

/** The promises of `KvStore` for expiring entries. `at` reads the store at other times of day, so no test waits. */
export function kvExpiryContract(subjectOf: () => ContractSubject): void {
  describe("expiry", () => {
    /** A new entry that expires in a minute. */
    async function expiring(key: string, value = "old"): Promise<KvEntry> {
      const { store, clock } = subjectOf();
      await put(store.kv, key, bytes(value), { expiresAtMs: clock.nowMs() + MINUTE_MS });
      return (await again(() => store.kv.get(key)))!;
    }
    const now = (): KvStore => subjectOf().store.kv;
    const later = (): KvStore => subjectOf().at(2 * MINUTE_MS);

    test("an entry is there with its moment before it, and absent from it on", async () => {
      const key = uniqueName("expires");
      const expiresAtMs = subjectOf().clock.nowMs() + 60 * MINUTE_MS;
      await put(now(), key, bytes("value"), { expiresAtMs });
      const before = subjectOf().at(58 * MINUTE_MS);
      expect(await again(() => before.get(key))).toMatchObject({ value: bytes("value"), expiresAtMs });
      expect(await listAll(before, key, 10)).toMatchObject([{ key, expiresAtMs }]);
      expect(
        await again(() =>
          subjectOf()
            .at(61 * MINUTE_MS)
            .get(key),
        ),
      ).toBeUndefined();
    });

    test.each<[string, (kv: KvStore, entry: KvEntry) => Promise<unknown>]>([
      ["get", (kv, { key }) => kv.get(key)],
      ["list", (kv, { key }) => listAll(kv, key, 10)],
      ["a put over its revision", (kv, { key, revision }) => kv.put(key, bytes("not this"), { ifRevision: revision })],
      ["a delete of its revision", (kv, { key, revision }) => kv.delete(key, { ifRevision: revision })],
      ["a condition of a transaction", (kv, { key, revision }) => kv.txn({ if: [{ key, revision }], then: [] })],
      [
        "an operation of a transaction that is not done",
        (kv, { key }) =>
          kv.txn({ if: [{ key: `${key}/absent`, revision: 1 }], then: [{ kind: "put", key, value: bytes("no") }] }),
      ],
    ])("what %s found expired is absent for a slower clock, and on one that is set back", async (_way, find) => {
      const entry = await expiring(uniqueName("found"));
      await again(() => find(later(), entry));
      expect(await again(() => now().get(entry.key))).toBeUndefined();
      expect(await listAll(now(), entry.key, 10)).toEqual([]);
    });

    test("conditions count an expired entry as absent", async () => {
      const [a, b] = [await expiring(uniqueName("a")), await expiring(uniqueName("b"))];
      const c = await expiring(uniqueName("c"));
      const refused = { ok: false, current: undefined };
      expect(await again(() => later().put(a.key, bytes("new"), { ifRevision: a.revision }))).toEqual(refused);
      expect(await again(() => later().delete(b.key, { ifRevision: b.revision }))).toEqual(refused);
      expect((await put(later(), c.key, bytes("new"), { ifRevision: 0 })).ok).toBe(true);
      expect(text((await again(() => now().get(c.key)))!.value)).toBe("new");
    });

    test.each<[string, (kv: KvStore, key: string) => Promise<unknown>]>([
      ["a put", (kv, key) => put(kv, key, bytes("new"))],
      ["a put of what is absent", (kv, key) => put(kv, key, bytes("new"), { ifRevision: 0 })],
      ["a transaction", (kv, key) => txn(kv, { if: [], then: [{ kind: "put", key, value: bytes("new") }] })],
    ])("%s over an expired entry begins a new life", async (_way, write) => {
      const old = await expiring(uniqueName("reborn"));
      await write(later(), old.key);
      const entry = (await again(() => now().get(old.key)))!;
      expect(entry).toMatchObject({ value: bytes("new") });
      expect(entry.createRevision).toBeGreaterThan(old.revision);
      expect(entry.expiresAtMs).toBeUndefined();
      const fence = { if: [{ key: old.key, createRevision: old.createRevision }], then: [] };
      expect((await again(() => now().txn(fence))).ok).toBe(false);
    });

    test("a transaction of several keys counts the expired ones as absent, and does all or nothing", async () => {
      const [gone, fence] = [await expiring(uniqueName("gone")), await expiring(uniqueName("fence"))];
      const lasting = uniqueName("lasting");
      await put(now(), lasting, bytes("lasting"));
      const request = (createRevision: number, value: string): KvTxn => ({
        if: [
          { key: gone.key, revision: 0 },
          { key: fence.key, createRevision },
        ],
        then: [
          { kind: "put", key: gone.key, value: bytes(value) },
          { kind: "delete", key: lasting },
        ],
      });
      expect(await txn(later(), request(fence.createRevision, "not this"))).toBe(false);
      expect(await again(() => now().get(gone.key))).toBeUndefined();
      expect(await again(() => now().get(lasting))).toBeDefined();
      expect(await txn(later(), request(0, "new"))).toBe(true);
      expect(text((await again(() => now().get(gone.key)))!.value)).toBe("new");
      expect(await again(() => now().get(lasting))).toBeUndefined();
    });

    test("a transaction gives an expiry as a put does", async () => {
      const key = uniqueName("txn");
      const expiresAtMs = subjectOf().clock.nowMs() + MINUTE_MS;
      await txn(now(), { if: [], then: [{ kind: "put", key, value: bytes("value"), expiresAtMs }] });
      expect(await again(() => now().get(key))).toMatchObject({ value: bytes("value"), expiresAtMs });
      expect(await again(() => later().get(key))).toBeUndefined();
    });

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

    test("every put sets the expiry anew, within the same life", async () => {
      const { key, createRevision } = await expiring(uniqueName("prolonged"));
      const expiresAtMs = subjectOf().clock.nowMs() + 60 * MINUTE_MS;
      await put(now(), key, bytes("prolonged"), { expiresAtMs });
      const prolonged = { value: bytes("prolonged"), expiresAtMs, createRevision };
      expect(await again(() => later().get(key))).toMatchObject(prolonged);
      await put(now(), key, bytes("lasting"));
      const entry = await again(() =>
        subjectOf()
          .at(600 * MINUTE_MS)
          .get(key),
      );
      expect(entry).toMatchObject({ value: bytes("lasting"), createRevision });
      expect(entry!.expiresAtMs).toBeUndefined();
    });

    test("a moment that is over ends the entry at once", async () => {
      const key = uniqueName("over");
      await put(now(), key, bytes("value"), { expiresAtMs: subjectOf().clock.nowMs() - 1 });
      expect(await again(() => now().get(key))).toBeUndefined();
    });

    test("clocks that differ: what was not found expired is prolonged by the slower controller, for both", async () => {
      const [slow, fast] = [now(), later()];
      const { key, revision, createRevision } = await expiring(uniqueName("slow"));
      const expiresAtMs = subjectOf().clock.nowMs() + 10 * MINUTE_MS;
      expect((await put(slow, key, bytes("prolonged"), { ifRevision: revision, expiresAtMs })).ok).toBe(true);
      expect(await again(() => fast.get(key))).toMatchObject({ value: bytes("prolonged"), createRevision });
    });

    test("clocks that differ: who finds it absent and who prolongs it never both win", async () => {
      const finders: ((key: string) => Promise<boolean>)[] = [
        async (key) => (await again(() => later().get(key))) !== undefined,
        async (key) => (await listAll(later(), key, 10)).length > 0,
      ];
      for (let round = 0; round < RACES; round++) {
        const { key, revision } = await expiring(uniqueName("race"));
        const find = () => finders[round % 2]!(key);
        const prolong = async () => (await put(now(), key, bytes("prolonged"), { ifRevision: revision })).ok;
        const race = round % 4 < 2 ? [find(), prolong()] : [prolong(), find()];
        const [first, second] = await Promise.all(race);
        expect(first).toBe(second);
      }
    });

    test("of many that begin the next life one wins", async () => {
      const { key } = await expiring(uniqueName("next"));
      const create = (_: unknown, i: number) => put(later(), key, bytes(`writer ${i}`), { ifRevision: 0 });
      const results = await Promise.all(Array.from({ length: 12 }, create));
      const winners = results.flatMap((result, i) => (result.ok ? [`writer ${i}`] : []));
      expect(winners).toEqual([text((await again(() => now().get(key)))!.value)]);
    });

    test("an entry with a lease and an expiry goes with the first to end", async () => {
      const [ended, expired] = [uniqueName("ended"), uniqueName("expired")];
      const lease = await again(() => now().lease(LEASE_MS));
      const bound = { lease: lease.id, expiresAtMs: subjectOf().clock.nowMs() + MINUTE_MS };
      for (const key of [ended, expired]) await put(now(), key, bytes("value"), bound);
      expect(await again(() => now().get(ended))).toMatchObject(bound);
      expect(await again(() => later().get(expired))).toBeUndefined();
      await put(now(), expired, bytes("free"));
      await again(() => lease.revoke());
      expect(await again(() => now().get(ended))).toBeUndefined();
      expect(await again(() => now().get(expired))).toBeDefined();
    });

    test("values of any bytes come back as they were", async () => {
      const filled = (byte: number) => Array<number>(12).fill(byte);
      const values = [[], [0], [4], [4, 0, 0], [4, 0, 0, 0, 0, 0, 0, 0, 0, 7], filled(4), filled(255)];
      for (const value of values.map((each) => Uint8Array.from(each))) {
        const key = uniqueName("bytes");
        await put(now(), key, value);
        expect(await again(() => later().get(key))).toMatchObject({ value });
        await put(now(), key, value, { expiresAtMs: subjectOf().clock.nowMs() + MINUTE_MS });
        expect((await again(() => now().get(key)))!.value).toEqual(value);
        await remove(now(), key);
      }
    });

    test("an expiry may be as far ahead as numbers reach, and is a whole number of milliseconds", async () => {
      const key = uniqueName("far");
      await put(now(), key, new Uint8Array(KV_VALUE_MAX_BYTES), { expiresAtMs: Number.MAX_SAFE_INTEGER });
      expect(await again(() => later().get(key))).toMatchObject({ expiresAtMs: Number.MAX_SAFE_INTEGER });
      for (const expiresAtMs of [-1, 1.5, NaN, Infinity, Number.MAX_SAFE_INTEGER + 1]) {
        const operation = { kind: "put" as const, key, value: bytes("x"), expiresAtMs };
        const invalid = { code: "invalid" };
        await expect(again(() => now().put(key, bytes("x"), { expiresAtMs }))).rejects.toMatchObject(invalid);
        await expect(again(() => now().txn({ if: [], then: [operation] }))).rejects.toMatchObject(invalid);
      }
      await remove(now(), key);
    });

    test("written thousands of times a key is one life and goes at its last moment, once", async () => {
      const { key, createRevision } = await expiring(uniqueName("aged"));
      const lastMs = subjectOf().clock.nowMs() + 10 * MINUTE_MS;
      const { changes, atOnce } = subjectOf().advance === undefined ? AGED_IN_REAL_TIME : AGED;
      for (let from = 0; from < changes; from += atOnce) {
        const write = (_: unknown, i: number) =>
          put(now(), key, bytes(String(from + i)), { expiresAtMs: lastMs - changes + from + i });
        await Promise.all(Array.from({ length: atOnce }, write));
      }
      await put(now(), key, bytes("last"), { expiresAtMs: lastMs });
      const last = { value: bytes("last"), expiresAtMs: lastMs, createRevision };
      expect(await listAll(later(), key, 10)).toMatchObject([last]);
      const { revision } = await again(() => now().list(key));
      await Promise.all(
        [1, 2, 3].map(() =>
          again(() =>
            subjectOf()
              .at(11 * MINUTE_MS)
              .get(key),
          ),
        ),
      );
      await put(now(), key, bytes("next"));
      const events = await collect(now(), key, { since: revision, until: told(`${key}=next`) });
      expect(changesOf(events)).toEqual([`${key} gone`, `${key}=next`]);
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
  });
}

function told(line: string): (events: readonly KvEvent[]) => boolean {
  return (events) => events.map(tell).includes(line);
}

/** The events in words, without repetitions caused by lost answers. */
function changesOf(events: readonly KvEvent[]): readonly string[] {
  return events.map(tell).filter((line, at, lines) => line !== lines[at - 1]);
}
