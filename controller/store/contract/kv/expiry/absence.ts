import { expect, test } from "vitest";
import type { KvEntry, KvStore, KvTxn } from "../../../kv.ts";
import { again, bytes, put, text, txn, uniqueName } from "../../harness.ts";
import { listAll } from "../reading.ts";
import { type ExpirySubject, MINUTE_MS } from "./subject.ts";

/** An entry after its expiry: it is absent for every clock. */
export function expiredEntriesContract({ subject, now, later, expiring }: ExpirySubject): void {
  test("an entry is there with its moment before it, and absent from it on", async () => {
    const key = uniqueName("expires");
    const expiresAtMs = subject().clock.nowMs() + 60 * MINUTE_MS;
    await put(now(), key, bytes("value"), { expiresAtMs });
    const before = subject().at(58 * MINUTE_MS);
    expect(await again(() => before.get(key))).toMatchObject({ value: bytes("value"), expiresAtMs });
    expect(await listAll(before, key, 10)).toMatchObject([{ key, expiresAtMs }]);
    expect(
      await again(() =>
        subject()
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

  test("a moment that is over ends the entry at once", async () => {
    const key = uniqueName("over");
    await put(now(), key, bytes("value"), { expiresAtMs: subject().clock.nowMs() - 1 });
    expect(await again(() => now().get(key))).toBeUndefined();
  });
}

/** Conditions and transactions over expired entries. */
export function expiredConditionsContract({ now, later, expiring }: ExpirySubject): void {
  test("conditions count an expired entry as absent", async () => {
    const [a, b] = [await expiring(uniqueName("a")), await expiring(uniqueName("b"))];
    const c = await expiring(uniqueName("c"));
    const refused = { ok: false, current: undefined };
    expect(await again(() => later().put(a.key, bytes("new"), { ifRevision: a.revision }))).toEqual(refused);
    expect(await again(() => later().delete(b.key, { ifRevision: b.revision }))).toEqual(refused);
    expect((await put(later(), c.key, bytes("new"), { ifRevision: 0 })).ok).toBe(true);
    expect(text((await again(() => now().get(c.key)))!.value)).toBe("new");
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
}
