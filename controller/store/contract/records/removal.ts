import { expect, test } from "vitest";
import type { StoredRecord } from "../../objects.ts";
import { again, bytes, uniqueCid } from "../harness.ts";
import { DAY_MS, type RecordsSubject, ulid } from "./subject.ts";

/** The removal of records. */
export function removedRecordsContract({ objects, append, timeline, startMs }: RecordsSubject): void {
  test("records are removed, and removing them again is fine", async () => {
    const cid = uniqueCid();
    const ids = [1, 2, 3].map((i) => ulid(startMs() + i, i));
    await append(...ids.map((id) => ({ cid, id, value: bytes(id), terms: ["t"] })));
    const doomed = [
      { cid, id: ids[1]! },
      { cid, id: ulid(startMs(), 9) },
    ];
    await again(() => objects().removeRecords(doomed));
    await again(() => objects().removeRecords(doomed));
    expect(await timeline({ cid, fromMs: 0, toMs: startMs() + DAY_MS, terms: ["t"] })).toEqual([ids[2], ids[0]]);
    expect(await again(() => objects().getRecords(ids.map((id) => ({ cid, id }))))).toMatchObject([
      { id: ids[0] },
      undefined,
      { id: ids[2] },
    ]);
  });
}

/** A removed record stays removed, even if its producer appends it again with other data. */
export function repetitionsAfterRemovalContract({
  subject,
  objects,
  append,
  timeline,
  get,
  countOf,
  startMs,
}: RecordsSubject): void {
  test("what was removed stays removed whatever life a repetition gives it, at whatever age", async () => {
    for (const ageMs of [0, 3 * DAY_MS, 5 * DAY_MS, 200 * DAY_MS]) {
      const cid = uniqueCid();
      const atMs = startMs() - ageMs;
      const lives = [1, 2.9, 30, 300].map((days) => ({ expiresAtMs: atMs + days * DAY_MS }));
      const repeated = [...lives, {}, ...[...lives].reverse()];
      const record = (number: number): StoredRecord => ({
        ...{ cid, id: ulid(atMs + number, number), value: bytes("line"), terms: ["t"] },
      });
      const [early, other, ...gone] = [1, 2, 3, 4, 5].map(record) as [StoredRecord, StoredRecord, ...StoredRecord[]];
      await append(other, ...gone.map((one, at) => ({ ...one, ...[{}, lives[3]!, lives[2]!][at] })));
      await again(() => objects().removeRecords([early, ...gone]));
      for (const life of repeated) await append(...[early, ...gone].map((one) => ({ ...one, ...life })));
      const whole = { cid, fromMs: atMs - DAY_MS, toMs: atMs + DAY_MS };
      for (const terms of [[], ["t"]]) expect(await timeline({ ...whole, terms })).toEqual([other.id]);
      expect(await countOf(whole)).toBe(1);
      for (const { id } of [early, ...gone]) expect(await get(cid, id)).toBeUndefined();
    }
  });

  test("what was removed is not brought back by appending it again, whatever it holds", async () => {
    const cid = uniqueCid();
    const record = (number: number): StoredRecord => ({
      cid,
      id: ulid(startMs(), number),
      value: bytes("first"),
      terms: ["t"],
    });
    const [gone, early, other] = [record(1), record(2), record(3)];
    await append(gone, other);
    await again(() => objects().removeRecords([gone, early]));
    const expiresAtMs = subject().clock.nowMs() + DAY_MS;
    await append(gone, early, other);
    for (const value of ["second", "third", "fourth"].map(bytes))
      await append({ ...gone, value, terms: ["t", "more"] }, { ...gone, value, terms: ["t"], expiresAtMs });
    for (const terms of [[], ["t"], ["more"]]) {
      const found = await timeline({ cid, fromMs: 0, toMs: startMs() + DAY_MS, terms });
      expect(found.filter((id) => id !== other.id)).toEqual([]);
    }
    expect(await again(() => objects().getRecords([gone, early, other]))).toMatchObject([
      undefined,
      undefined,
      { id: other.id },
    ]);
  });
}
