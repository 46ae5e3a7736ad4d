import { expect, test } from "vitest";
import { KV_TXN_MAX_OPERATIONS } from "../../../../common/limits.ts";
import type { KvStore, KvTxn } from "../../kv.ts";
import { again, bytes, put, remove, text, txn, uniqueName } from "../harness.ts";
import { listAll } from "./reading.ts";

/** Transactions: all or nothing, up to their limits. */
export function transactionsContract(kv: () => KvStore): void {
  test("a transaction does all or nothing", async () => {
    const prefix = uniqueName("txn") + "/";
    const [a, b, c] = [`${prefix}a`, `${prefix}b`, `${prefix}c`];
    await put(kv(), c, bytes("old"));
    const old = (await again(() => kv().get(c)))!;
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
    expect(await txn(kv(), request)).toBe(true);
    expect((await listAll(kv(), prefix, 10)).map((entry) => text(entry.value))).toEqual(["A", "B"]);
    const refused = await txn(kv(), {
      if: [{ key: a, revision: 0 }],
      then: [{ kind: "put", key: b, value: bytes("not this") }],
    });
    expect(refused).toBe(false);
    expect((await listAll(kv(), prefix, 10)).map((entry) => text(entry.value))).toEqual(["A", "B"]);
  });

  test("a fence on one life of a key outlasts its writes and ends with it", async () => {
    const [key, fenced] = [uniqueName("life"), uniqueName("fenced")];
    await put(kv(), key, bytes("1"));
    const { createRevision } = (await again(() => kv().get(key)))!;
    await put(kv(), key, bytes("2"));
    const write = (value: string) =>
      txn(kv(), { if: [{ key, createRevision }], then: [{ kind: "put", key: fenced, value: bytes(value) }] });
    expect(await write("in the same life")).toBe(true);
    await remove(kv(), key);
    await put(kv(), key, bytes("3"));
    expect(await write("in another life")).toBe(false);
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
    expect((await again(() => kv().txn(request))).ok).toBe(true);
    expect(await listAll(kv(), prefix, 1_000)).toHaveLength(operations);
  });
}
