import { expect, test } from "vitest";
import type { KvStore } from "../../../kv.ts";
import { again, bytes, put, text, txn, uniqueName } from "../../harness.ts";
import { changesOf, collect, listAll, told } from "../reading.ts";
import { type ExpirySubject, MINUTE_MS } from "./subject.ts";

/**
 * Number of changes of one key, and number of changes in parallel. A store with a real clock is too slow for so many.
 */
const AGED = { changes: 10_000, atOnce: 100 };
const AGED_IN_REAL_TIME = { changes: 500, atOnce: 5 };

/** The next life of a key whose entry has expired. */
export function nextLifeContract({ now, later, expiring }: ExpirySubject): void {
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

  test("of many that begin the next life one wins", async () => {
    const { key } = await expiring(uniqueName("next"));
    const create = (_: unknown, i: number) => put(later(), key, bytes(`writer ${i}`), { ifRevision: 0 });
    const results = await Promise.all(Array.from({ length: 12 }, create));
    const winners = results.flatMap((result, i) => (result.ok ? [`writer ${i}`] : []));
    expect(winners).toEqual([text((await again(() => now().get(key)))!.value)]);
  });
}

/** Puts that change the expiry within one life of a key. */
export function prolongingContract({ subject, now, later, expiring }: ExpirySubject): void {
  test("every put sets the expiry anew, within the same life", async () => {
    const { key, createRevision } = await expiring(uniqueName("prolonged"));
    const expiresAtMs = subject().clock.nowMs() + 60 * MINUTE_MS;
    await put(now(), key, bytes("prolonged"), { expiresAtMs });
    const prolonged = { value: bytes("prolonged"), expiresAtMs, createRevision };
    expect(await again(() => later().get(key))).toMatchObject(prolonged);
    await put(now(), key, bytes("lasting"));
    const entry = await again(() =>
      subject()
        .at(600 * MINUTE_MS)
        .get(key),
    );
    expect(entry).toMatchObject({ value: bytes("lasting"), createRevision });
    expect(entry!.expiresAtMs).toBeUndefined();
  });

  test("written thousands of times a key is one life and goes at its last moment, once", async () => {
    const { key, createRevision } = await expiring(uniqueName("aged"));
    const lastMs = subject().clock.nowMs() + 10 * MINUTE_MS;
    const { changes, atOnce } = subject().advance === undefined ? AGED_IN_REAL_TIME : AGED;
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
          subject()
            .at(11 * MINUTE_MS)
            .get(key),
        ),
      ),
    );
    await put(now(), key, bytes("next"));
    const events = await collect(now(), key, { since: revision, until: told(`${key}=next`) });
    expect(changesOf(events)).toEqual([`${key} gone`, `${key}=next`]);
  });
}
