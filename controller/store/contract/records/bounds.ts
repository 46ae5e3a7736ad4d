import { expect, test } from "vitest";
import { CHANGE_BATCH_MAX } from "../../../../common/limits.ts";
import { again, bytes, text, uniqueCid } from "../harness.ts";
import { type RecordsSubject, ulid } from "./subject.ts";

/** Ids, batches and cursors. */
export function recordChecksContract({ objects, append, startMs }: RecordsSubject): void {
  test("ids, batches and cursors are checked", async () => {
    const cid = uniqueCid();
    const record = { cid, id: "not a ulid", value: bytes("x"), terms: [] };
    await expect(append(record)).rejects.toMatchObject({ code: "invalid" });
    const many = Array.from({ length: CHANGE_BATCH_MAX + 1 }, (_, i) => ({ ...record, id: ulid(startMs(), i) }));
    await expect(append(...many)).rejects.toMatchObject({ code: "too_large" });
    const request = { cid, fromMs: 0, toMs: startMs() };
    await expect(again(() => objects().timeline(request, { limit: 5, cursor: "garbage" }))).rejects.toMatchObject({
      code: "invalid",
    });
  });
}

/** Another tenant of the same engine. */
export function recordTenantsContract({ subject, append, get, startMs }: RecordsSubject): void {
  test("tenants do not see each other's records", async () => {
    const record = { cid: uniqueCid(), id: ulid(startMs(), 1), value: bytes("mine"), terms: ["t"] };
    await append(record);
    const other = subject().other.objects;
    expect(await again(() => other.getRecords([record]))).toEqual([undefined]);
    await again(() => other.removeRecords([record]));
    expect(text((await get(record.cid, record.id))!.value)).toBe("mine");
  });
}
