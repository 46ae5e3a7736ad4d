import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  KV_KEY_MAX_BYTES,
  KV_PAGE_MAX_ENTRIES,
  KV_TXN_MAX_OPERATIONS,
  KV_VALUE_MAX_BYTES,
} from "../../../common/limits.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import type { KvStore, KvTxn } from "../kv.ts";
import {
  again,
  bytes,
  type ContractSubject,
  type OpenSubject,
  passTime,
  put,
  remove,
  seedOfRun,
  text,
  txn,
  uniqueName,
} from "./harness.ts";
import { kvExpiryContract } from "./kv-expiry.ts";
import { collect, drain, listAll, revisionOf, tell } from "./kv-reading.ts";

const LEASE_MS = 5_000;
/** A short lease, for tests in which real time must pass. */
const KEPT_LEASE_MS = 2_000;

/** All promises of `KvStore`, for any engine. */
export function kvContract(name: string, open: OpenSubject): void {
  describe(`KvStore: ${name}`, () => {
    let subject: ContractSubject;
    let kv: KvStore;
    beforeAll(async () => {
      subject = await open();
      kv = subject.store.kv;
    });
    afterAll(async () => subject.close());

    test("a key is absent, then there with its revisions, then absent again", async () => {
      const key = uniqueName("life");
      expect(await again(() => kv.get(key))).toBeUndefined();
      await put(kv, key, bytes("one"));
      const first = await again(() => kv.get(key));
      expect(first).toMatchObject({ key, createRevision: expect.any(Number), revision: expect.any(Number) });
      expect(text(first!.value)).toBe("one");
      await put(kv, key, bytes("two"));
      const second = await again(() => kv.get(key));
      expect(second!.createRevision).toBe(first!.createRevision);
      expect(second!.revision).toBeGreaterThan(first!.revision);
      expect(await remove(kv, key)).toBe(true);
      expect(await again(() => kv.get(key))).toBeUndefined();
      await put(kv, key, bytes("three"));
      expect((await again(() => kv.get(key)))!.createRevision).toBeGreaterThan(second!.revision);
    });

    test("revisions rise through the whole store", async () => {
      const prefix = uniqueName("rise");
      const revisions: number[] = [];
      for (const part of ["b", "a", "c"]) {
        const result = await put(kv, `${prefix}/${part}`, bytes(part));
        if (result.ok) revisions.push(result.revision);
      }
      expect(revisions).toHaveLength(3);
      expect(revisions).toEqual([...revisions].sort((a, b) => a - b));
      expect(new Set(revisions).size).toBe(3);
    });

    test("of many that create the same key one wins and the others are told what is there", async () => {
      const key = uniqueName("race");
      const results = await Promise.all(
        Array.from({ length: 12 }, (_, i) => put(kv, key, bytes(`writer ${i}`), { ifRevision: 0 })),
      );
      const winners = results.flatMap((result, i) => (result.ok ? [`writer ${i}`] : []));
      expect(winners).toHaveLength(1);
      const current = await again(() => kv.get(key));
      expect(text(current!.value)).toBe(winners[0]);
      for (const result of results) if (!result.ok) expect(text(result.current!.value)).toBe(winners[0]);
    });

    test("a condition on a revision holds over just that revision", async () => {
      const key = uniqueName("condition");
      const lost = await put(kv, key, bytes("x"), { ifRevision: 1 });
      expect(lost).toEqual({ ok: false, current: undefined });
      await put(kv, key, bytes("first"));
      const { revision } = (await again(() => kv.get(key)))!;
      expect((await put(kv, key, bytes("second"), { ifRevision: revision })).ok).toBe(true);
      const late = await put(kv, key, bytes("late"), { ifRevision: revision });
      expect(late.ok).toBe(false);
      expect(await remove(kv, key, { ifRevision: revision })).toBe(false);
      const current = (await again(() => kv.get(key)))!;
      expect(text(current.value)).toBe("second");
      expect(await remove(kv, key, { ifRevision: current.revision })).toBe(true);
    });

    test("deleting what is absent is fine, and refused when a revision was expected", async () => {
      const key = uniqueName("absent");
      expect(await remove(kv, key)).toBe(true);
      expect((await again(() => kv.delete(key, { ifRevision: 7 }))).ok).toBe(false);
    });

    test("a list is in byte order and comes in pages without gap or repeat", async () => {
      const prefix = uniqueName("list") + "/";
      const names = ["b", "a", "é", "z", "aa", "a/1", "\u{10000}", "ￜ", "B"];
      for (const each of names) await put(kv, prefix + each, bytes(each));
      await put(kv, prefix.slice(0, -1) + "0", bytes("outside"));
      const expected = names
        .map((each) => prefix + each)
        .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      expect((await listAll(kv, prefix, 2)).map((entry) => entry.key)).toEqual(expected);
      expect((await listAll(kv, prefix, 1_000)).map((entry) => entry.key)).toEqual(expected);
      expect((await listAll(kv, prefix, 1_000, expected[2])).map((entry) => entry.key)).toEqual(expected.slice(3));
      expect(await listAll(kv, uniqueName("nothing"), 10)).toEqual([]);
      // An `after` before the prefix has no effect, with any keys in between.
      expect((await listAll(kv, prefix, 1_000, "")).map((entry) => entry.key)).toEqual(expected);
    });

    test("a watch from a page's revision misses nothing and keeps the order", async () => {
      const prefix = uniqueName("watch") + "/";
      await put(kv, `${prefix}old`, bytes("before"));
      const { revision } = await again(() => kv.list(prefix));
      const seen = collect(kv, prefix, {
        since: revision,
        until: (events) => events.some((event) => event.kind === "put" && event.entry.key === `${prefix}end`),
      });
      for (let i = 0; i < 30; i++) await put(kv, `${prefix}${i % 3}`, bytes(String(i)));
      await remove(kv, `${prefix}0`);
      await put(kv, uniqueName("elsewhere"), bytes("not seen"));
      await put(kv, `${prefix}end`, bytes("end"));
      const events = await seen;
      const told = events.map(tell).filter((line, i, lines) => line !== lines[i - 1]);
      const expected = [
        ...Array.from({ length: 30 }, (_, i) => `${prefix}${i % 3}=${i}`),
        `${prefix}0 gone`,
        `${prefix}end=end`,
      ];
      expect(told).toEqual(expected);
      const revisions = events.map(revisionOf);
      expect(revisions).toEqual([...revisions].sort((a, b) => a - b));
      expect(revisions[0]).toBeGreaterThan(revision);
    });

    test("a watch tells what happened before it began, after its revision", async () => {
      const prefix = uniqueName("past") + "/";
      const { revision } = await again(() => kv.list(prefix));
      await put(kv, `${prefix}a`, bytes("1"));
      await put(kv, `${prefix}b`, bytes("2"));
      const events = await collect(kv, prefix, {
        since: revision,
        until: (all) => all.map(tell).includes(`${prefix}b=2`),
      });
      expect(new Set(events.map(tell))).toEqual(new Set([`${prefix}a=1`, `${prefix}b=2`]));
    });

    test("a watch just ends when its signal fires", async () => {
      const prefix = uniqueName("signal");
      const { revision } = await again(() => kv.list(prefix));
      const abort = new AbortController();
      const watching = drain(kv.watch(prefix, { sinceRevision: revision, signal: abort.signal }));
      abort.abort();
      expect(await watching).toEqual([]);
    });

    test("a watch from before the kept history says so", async (context) => {
      if (subject.compactKv === undefined) return context.skip();
      const prefix = uniqueName("compacted") + "/";
      const { revision } = await again(() => kv.list(prefix));
      await put(kv, `${prefix}a`, bytes("1"));
      await put(kv, `${prefix}a`, bytes("2"));
      await subject.compactKv();
      const watching = drain(kv.watch(prefix, { sinceRevision: revision, signal: new AbortController().signal }));
      await expect(watching).rejects.toMatchObject({ code: "compacted" });
      const page = await again(() => kv.list(prefix));
      const later = collect(kv, prefix, { since: page.revision, until: (events) => events.length > 0 });
      await put(kv, `${prefix}a`, bytes("3"));
      expect((await later).map(tell)[0]).toBe(`${prefix}a=3`);
    });

    test("what is bound to a lease goes with it, and watchers are told", async () => {
      const prefix = uniqueName("lease") + "/";
      const lease = await again(() => kv.lease(LEASE_MS));
      await put(kv, `${prefix}bound`, bytes("1"), { lease: lease.id });
      await put(kv, `${prefix}free`, bytes("2"));
      expect((await again(() => kv.get(`${prefix}bound`)))!.lease).toBe(lease.id);
      const { revision } = await again(() => kv.list(prefix));
      expect(lease.lost.aborted).toBe(false);
      expect(lease.held()).toBe(true);
      await again(() => lease.revoke());
      expect(lease.lost.aborted).toBe(true);
      expect(lease.held()).toBe(false);
      expect((await listAll(kv, prefix, 10)).map((entry) => entry.key)).toEqual([`${prefix}free`]);
      const events = await collect(kv, prefix, { since: revision, until: (all) => all.length > 0 });
      expect(events.map(tell)).toEqual([`${prefix}bound gone`]);
    });

    test("written again without a lease a key stays when the lease ends", async () => {
      const key = uniqueName("unbound");
      const lease = await again(() => kv.lease(LEASE_MS));
      await put(kv, key, bytes("bound"), { lease: lease.id });
      await put(kv, key, bytes("free"));
      await again(() => lease.revoke());
      expect(text((await again(() => kv.get(key)))!.value)).toBe("free");
    });

    test("a lease keeps itself alive", async () => {
      const key = uniqueName("alive");
      const lease = await again(() => kv.lease(KEPT_LEASE_MS));
      await put(kv, key, bytes("here"), { lease: lease.id });
      const overMs = subject.clock.nowMs() + 3 * KEPT_LEASE_MS;
      await passTime(subject, 3 * KEPT_LEASE_MS, () => Promise.resolve(subject.clock.nowMs() > overMs));
      expect(lease.lost.aborted).toBe(false);
      expect(await again(() => kv.get(key))).toBeDefined();
      await again(() => lease.revoke());
    });

    test("nothing is bound to a lease that has ended", async () => {
      const lease = await again(() => kv.lease(LEASE_MS));
      await again(() => lease.revoke());
      const key = uniqueName("ended");
      await expect(again(() => kv.put(key, bytes("x"), { lease: lease.id }))).rejects.toMatchObject({
        name: "AppError",
      });
      expect(await again(() => kv.get(key))).toBeUndefined();
    });

    test("a transaction does all or nothing", async () => {
      const prefix = uniqueName("txn") + "/";
      const [a, b, c] = [`${prefix}a`, `${prefix}b`, `${prefix}c`];
      await put(kv, c, bytes("old"));
      const old = (await again(() => kv.get(c)))!;
      const request = {
        if: [
          { key: a, revision: 0 },
          { key: c, revision: old.revision },
          { key: c, createRevision: old.createRevision },
        ],
        then: [
          { kind: "put" as const, key: a, value: bytes("A") },
          { kind: "put" as const, key: b, value: bytes("B") },
          { kind: "delete" as const, key: c },
        ],
      };
      expect(await txn(kv, request)).toBe(true);
      expect((await listAll(kv, prefix, 10)).map((entry) => text(entry.value))).toEqual(["A", "B"]);
      const refused = await txn(kv, {
        if: [{ key: a, revision: 0 }],
        then: [{ kind: "put", key: b, value: bytes("not this") }],
      });
      expect(refused).toBe(false);
      expect((await listAll(kv, prefix, 10)).map((entry) => text(entry.value))).toEqual(["A", "B"]);
    });

    test("a fence on one life of a key outlasts its writes and ends with it", async () => {
      const [key, fenced] = [uniqueName("life"), uniqueName("fenced")];
      await put(kv, key, bytes("1"));
      const { createRevision } = (await again(() => kv.get(key)))!;
      await put(kv, key, bytes("2"));
      const write = (value: string) =>
        txn(kv, { if: [{ key, createRevision }], then: [{ kind: "put", key: fenced, value: bytes(value) }] });
      expect(await write("in the same life")).toBe(true);
      await remove(kv, key);
      await put(kv, key, bytes("3"));
      expect(await write("in another life")).toBe(false);
    });

    test("of entries added to one list at once none is lost and none is doubled", async () => {
      const key = uniqueName("list");
      await put(kv, key, bytes("start"));
      const add = async (mark: string): Promise<void> => {
        for (;;) {
          const current = (await again(() => kv.get(key)))!;
          // Also after a lost answer: the write may have been made, and others may have built on it.
          if (text(current.value).split(" ").includes(mark)) return;
          await put(kv, key, bytes(`${text(current.value)} ${mark}`), { ifRevision: current.revision });
        }
      };
      await Promise.all(
        [1, 2, 3, 4].map(async (writer) => {
          for (let i = 0; i < 5; i++) await add(`${writer}.${i}`);
        }),
      );
      const marks = text((await again(() => kv.get(key)))!.value)
        .split(" ")
        .slice(1);
      expect(marks.sort()).toEqual([1, 2, 3, 4].flatMap((writer) => [0, 1, 2, 3, 4].map((i) => `${writer}.${i}`)));
    });

    test("limits are kept and named", async () => {
      const key = uniqueName("limit");
      const tooLarge = { code: "too_large" };
      await expect(again(() => kv.put("k".repeat(KV_KEY_MAX_BYTES + 1), bytes("x")))).rejects.toMatchObject(tooLarge);
      await expect(again(() => kv.put(key, new Uint8Array(KV_VALUE_MAX_BYTES + 1)))).rejects.toMatchObject(tooLarge);
      const many = Array.from({ length: KV_TXN_MAX_OPERATIONS + 1 }, (_, i) => ({
        kind: "delete" as const,
        key: `${key}/${i}`,
      }));
      await expect(again(() => kv.txn({ if: [], then: many }))).rejects.toMatchObject(tooLarge);
      const greatest = new Uint8Array(KV_VALUE_MAX_BYTES).fill(7);
      const longKey = (key + "-").padEnd(KV_KEY_MAX_BYTES, "k");
      expect((await put(kv, longKey, greatest)).ok).toBe(true);
      expect((await again(() => kv.get(longKey)))!.value).toHaveLength(KV_VALUE_MAX_BYTES);
      await remove(kv, longKey);
      const twice = [
        { kind: "put" as const, key, value: bytes("1") },
        { kind: "put" as const, key, value: bytes("2") },
      ];
      await expect(again(() => kv.txn({ if: [], then: twice }))).rejects.toMatchObject({ code: "invalid" });
      for (const limit of [0, 1.5, KV_PAGE_MAX_ENTRIES + 1]) {
        await expect(again(() => kv.list(key, { limit }))).rejects.toMatchObject({ code: "invalid" });
      }
      await again(() => kv.list(key, { limit: KV_PAGE_MAX_ENTRIES }));
      await expect(again(() => kv.lease(1))).rejects.toMatchObject({ code: "invalid" });
    });

    const [most, half] = [KV_TXN_MAX_OPERATIONS, KV_TXN_MAX_OPERATIONS / 2];
    test.each([
      [most, 0],
      [0, most],
      [half, half],
    ])("a transaction of %i conditions and %i operations is within the limits", async (conditions, operations) => {
      const prefix = uniqueName("great") + "/";
      const keys = (count: number, part: string) => Array.from({ length: count }, (_, i) => `${prefix}${part}/${i}`);
      const request: KvTxn = {
        if: keys(conditions, "if").map((key) => ({ key, revision: 0 })),
        then: keys(operations, "then").map((key) => ({ kind: "put", key, value: bytes(key) })),
      };
      expect((await again(() => kv.txn(request))).ok).toBe(true);
      expect(await listAll(kv, prefix, 1_000)).toHaveLength(operations);
    });

    test("tenants do not see each other", async () => {
      const key = uniqueName("tenant");
      await put(kv, key, bytes("mine"));
      expect(await again(() => subject.other.kv.get(key))).toBeUndefined();
      expect(await listAll(subject.other.kv, key, 10)).toEqual([]);
      await put(subject.other.kv, key, bytes("theirs"));
      expect(text((await again(() => kv.get(key)))!.value)).toBe("mine");
    });

    kvExpiryContract(() => subject);

    test("behaves like a map under a random sequence of calls", async () => {
      const random = seededRandom(seedOfRun(`KvStore ${name}`));
      const prefix = uniqueName("model") + "/";
      const model = new Map<string, string>();
      for (let step = 0; step < 300; step++) {
        const key = prefix + Math.floor(random.next() * 12);
        await randomStep({ kv, key, model, value: `step ${step}`, choice: random.next() });
        if (step % 50 === 49) {
          const entries = await listAll(kv, prefix, 1 + Math.floor(random.next() * 5));
          expect(new Map(entries.map((entry) => [entry.key, text(entry.value)]))).toEqual(model);
        }
      }
    });
  });
}

interface Step {
  readonly kv: KvStore;
  readonly key: string;
  readonly model: Map<string, string>;
  readonly value: string;
  readonly choice: number;
}

async function randomStep({ kv, key, model, value, choice }: Step): Promise<void> {
  if (choice < 0.4) {
    await put(kv, key, bytes(value));
    model.set(key, value);
  } else if (choice < 0.6) {
    await remove(kv, key);
    model.delete(key);
  } else if (choice < 0.8) {
    const { ok } = await put(kv, key, bytes(value), { ifRevision: 0 });
    expect(ok).toBe(!model.has(key));
    if (ok) model.set(key, value);
  } else {
    const entry = await again(() => kv.get(key));
    expect(entry && text(entry.value)).toBe(model.get(key));
  }
}
