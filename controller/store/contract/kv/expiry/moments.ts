import { expect, test } from "vitest";
import { KV_VALUE_MAX_BYTES } from "../../../../../common/limits.ts";
import { again, bytes, put, remove, txn, uniqueName } from "../../harness.ts";
import { type ExpirySubject, MINUTE_MS } from "./subject.ts";

const LEASE_MS = 5_000;

/** Ways to set an expiry, and the allowed expiries and values. */
export function momentsContract({ subject, now, later }: ExpirySubject): void {
  test("a transaction gives an expiry as a put does", async () => {
    const key = uniqueName("txn");
    const expiresAtMs = subject().clock.nowMs() + MINUTE_MS;
    await txn(now(), { if: [], then: [{ kind: "put", key, value: bytes("value"), expiresAtMs }] });
    expect(await again(() => now().get(key))).toMatchObject({ value: bytes("value"), expiresAtMs });
    expect(await again(() => later().get(key))).toBeUndefined();
  });

  test("an entry with a lease and an expiry goes with the first to end", async () => {
    const [ended, expired] = [uniqueName("ended"), uniqueName("expired")];
    const lease = await again(() => now().lease(LEASE_MS));
    const bound = { lease: lease.id, expiresAtMs: subject().clock.nowMs() + MINUTE_MS };
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
      await put(now(), key, value, { expiresAtMs: subject().clock.nowMs() + MINUTE_MS });
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
}
