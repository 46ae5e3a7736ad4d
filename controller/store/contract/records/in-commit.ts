import { expect, test } from "vitest";
import { isAppError } from "../../../../common/errors.ts";
import type { EntityChange, RecordsInCommit, StoredRecord } from "../../objects.ts";
import { again, bytes, uniqueCid } from "../harness.ts";
import { type RecordsSubject, ulid } from "./subject.ts";

/** The write of one record by the commit of another write. */
class Given implements RecordsInCommit {
  made = 0;
  isUnknown = false;
  readonly record: StoredRecord;

  constructor(record: StoredRecord) {
    this.record = record;
  }

  records(): readonly StoredRecord[] {
    this.made += 1;
    return [this.record];
  }

  failed(): void {
    this.isUnknown = true;
  }
}

/** Records that are made inside the commit of a write. */
export function recordsInCommitContract({ objects, get, startMs }: RecordsSubject): void {
  const given = (number: number): Given =>
    new Given({ cid: uniqueCid(), id: ulid(startMs(), number), value: bytes("beside"), terms: ["t"] });

  /** Makes the write once. True if it resolved. */
  async function isWritten(write: () => Promise<void>): Promise<boolean> {
    try {
      await write();
      return true;
    } catch (error) {
      if (isAppError(error, "unavailable", "unknown_outcome")) return false;
      throw error;
    }
  }

  test.each(["change", "append", "append of nothing"])("of a written %s are there, if they were made", async (kind) => {
    for (let number = 0; number < 20; number += 1) {
      const cid = uniqueCid();
      const beside = given(number);
      const record = { cid, id: ulid(startMs(), 50 + number), value: bytes("own"), terms: [] };
      const change: EntityChange = { key: { cid, id: "e" }, timeUs: startMs() * 1_000, birth: true };
      const isMade = await isWritten(() => {
        if (kind === "change") return objects().change([change], beside);
        return objects().append(kind === "append" ? [record] : [], beside);
      });
      expect(beside.made).toBeLessThanOrEqual(1);
      const found = await get(beside.record.cid, beside.record.id);
      if (isMade && !beside.isUnknown) expect(found !== undefined).toBe(beside.made === 1);
      if (beside.made === 0) expect(found).toBeUndefined();
    }
  });

  test("are not made for a write that is refused", async () => {
    const beside = given(1);
    const wrong = { key: { cid: uniqueCid(), id: "e" }, timeUs: -1 };
    await expect(again(() => objects().change([wrong], beside))).rejects.toMatchObject({ code: "invalid" });
    const record = { cid: uniqueCid(), id: "no id", value: bytes("x"), terms: [] };
    await expect(again(() => objects().append([record], beside))).rejects.toMatchObject({ code: "invalid" });
    expect(beside.made).toBe(0);
  });
}
