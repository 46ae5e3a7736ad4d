import { expect, test } from "vitest";
import {
  CELL_MAX_BYTES,
  CHANGE_BATCH_MAX,
  OBJECT_ID_MAX_BYTES,
  TERMS_PER_OBJECT_MAX,
} from "../../../../common/limits.ts";
import type { EntityChange } from "../../objects.ts";
import { again, all, same, uniqueName } from "../harness.ts";
import { cellsOf, newKey, type ObjectsSubject } from "./subject.ts";

/** Limits of ids, cells, terms, numbers and batches. */
export function limitsContract({ objects, at, write, read }: ObjectsSubject): void {
  test("limits are kept and named", async () => {
    const key = newKey();
    const refused = async (change: Partial<EntityChange>, code: string): Promise<void> => {
      await expect(write({ key, timeUs: at(1), birth: true, ...change })).rejects.toMatchObject({ code });
    };
    await refused({ key: { cid: 1, id: "x".repeat(OBJECT_ID_MAX_BYTES + 1) } }, "too_large");
    await refused({ cells: new Map([["1", new Uint8Array(CELL_MAX_BYTES + 1)]]) }, "too_large");
    await refused({ addTerms: Array.from({ length: TERMS_PER_OBJECT_MAX + 1 }, (_, i) => `t${i}`) }, "too_large");
    await refused({ numbers: new Map([[99, 1]]) }, "invalid");
    await refused({ timeUs: 0.5 }, "invalid");
    const many = Array.from({ length: CHANGE_BATCH_MAX + 1 }, () => ({ key, timeUs: at(1), birth: true as const }));
    await expect(again(() => objects().change(many))).rejects.toMatchObject({ code: "too_large" });
    expect(await read(key)).toBeUndefined();
    const greatest = new Uint8Array(CELL_MAX_BYTES).fill(9);
    await write({ key, timeUs: at(2), birth: true, cells: new Map([["1", greatest]]) });
    expect(same((await read(key))!.cells.get("1")!.value, greatest)).toBe(true);
  });
}

/** Another tenant of the same engine. */
export function tenantsContract({ subject, at, write, values }: ObjectsSubject): void {
  test("tenants do not see each other", async () => {
    const key = newKey();
    const term = uniqueName("secret");
    await write({ key, timeUs: at(1), birth: true, cells: cellsOf({ "1": "mine" }), addTerms: [term] });
    const other = subject().other.objects;
    expect(await again(() => other.get([key]))).toEqual([undefined]);
    expect(await all(5, (page) => other.find({ terms: [term] }, page))).toEqual([]);
    await again(() => other.change([{ key, timeUs: at(5), death: true }]));
    expect(await values(key)).toEqual({ "1": "mine" });
  });
}
