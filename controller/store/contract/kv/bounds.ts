import { expect, test } from "vitest";
import {
  KV_KEY_MAX_BYTES,
  KV_PAGE_MAX_ENTRIES,
  KV_TXN_MAX_OPERATIONS,
  KV_VALUE_MAX_BYTES,
} from "../../../../common/limits.ts";
import type { KvStore } from "../../kv.ts";
import { again, bytes, type ContractSubject, put, remove, text, uniqueName } from "../harness.ts";
import { listAll } from "./reading.ts";

/** Limits of keys, values, pages, transactions and leases. */
export function limitsContract(kv: () => KvStore): void {
  test("limits are kept and named", async () => {
    const key = uniqueName("limit");
    const tooLarge = { code: "too_large" };
    await expect(again(() => kv().put("k".repeat(KV_KEY_MAX_BYTES + 1), bytes("x")))).rejects.toMatchObject(tooLarge);
    await expect(again(() => kv().put(key, new Uint8Array(KV_VALUE_MAX_BYTES + 1)))).rejects.toMatchObject(tooLarge);
    const many = Array.from({ length: KV_TXN_MAX_OPERATIONS + 1 }, (_, i) => ({
      kind: "delete" as const,
      key: `${key}/${i}`,
    }));
    await expect(again(() => kv().txn({ if: [], then: many }))).rejects.toMatchObject(tooLarge);
    const greatest = new Uint8Array(KV_VALUE_MAX_BYTES).fill(7);
    const longKey = (key + "-").padEnd(KV_KEY_MAX_BYTES, "k");
    expect((await put(kv(), longKey, greatest)).ok).toBe(true);
    expect((await again(() => kv().get(longKey)))!.value).toHaveLength(KV_VALUE_MAX_BYTES);
    await remove(kv(), longKey);
    const twice = [
      { kind: "put" as const, key, value: bytes("1") },
      { kind: "put" as const, key, value: bytes("2") },
    ];
    await expect(again(() => kv().txn({ if: [], then: twice }))).rejects.toMatchObject({ code: "invalid" });
    for (const limit of [0, 1.5, KV_PAGE_MAX_ENTRIES + 1]) {
      await expect(again(() => kv().list(key, { limit }))).rejects.toMatchObject({ code: "invalid" });
    }
    await again(() => kv().list(key, { limit: KV_PAGE_MAX_ENTRIES }));
    await expect(again(() => kv().lease(1))).rejects.toMatchObject({ code: "invalid" });
  });
}

/** Another tenant of the same engine. */
export function tenantsContract(subject: () => ContractSubject): void {
  const kv = (): KvStore => subject().store.kv;

  test("tenants do not see each other", async () => {
    const key = uniqueName("tenant");
    await put(kv(), key, bytes("mine"));
    expect(await again(() => subject().other.kv.get(key))).toBeUndefined();
    expect(await listAll(subject().other.kv, key, 10)).toEqual([]);
    await put(subject().other.kv, key, bytes("theirs"));
    expect(text((await again(() => kv().get(key)))!.value)).toBe("mine");
  });
}
