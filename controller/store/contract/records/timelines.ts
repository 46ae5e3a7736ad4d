import { expect, test } from "vitest";
import type { StoredRecord } from "../../objects.ts";
import { again, all, bytes, passTime, text, uniqueCid, uniqueName } from "../harness.ts";
import { DAY_MS, type RecordsSubject, TTL_MS, ulid } from "./subject.ts";

/** Timelines: their order, their span, and the terms that narrow them. */
export function timelinesContract({ objects, append, timeline, startMs }: RecordsSubject): void {
  test("a timeline is newest first across pages and days, at equal times the greater id first", async () => {
    const cid = uniqueCid();
    const begin = startMs() - 3 * DAY_MS;
    const ids = Array.from({ length: 60 }, (_, i) => ulid(begin + Math.floor(i / 3) * 4 * 3_600_000, i));
    await append(...shuffled(ids).map((id) => ({ cid, id, value: bytes(id), terms: [] })));
    const expected = [...ids].sort().reverse();
    const whole = { cid, fromMs: begin, toMs: begin + 10 * DAY_MS };
    for (const limit of [1, 7, 1_000]) expect(await timeline(whole, limit)).toEqual(expected);
  });

  test("a timeline begins at its first moment and ends before its last", async () => {
    const cid = uniqueCid();
    const begin = startMs();
    const ids = [0, 1, 2, 3].map((i) => ulid(begin + i, i));
    await append(...ids.map((id) => ({ cid, id, value: bytes(id), terms: [] })));
    expect(await timeline({ cid, fromMs: begin + 1, toMs: begin + 3 })).toEqual([ids[2], ids[1]]);
    expect(await timeline({ cid, fromMs: begin, toMs: begin })).toEqual([]);
    expect(await timeline({ cid: uniqueCid(), fromMs: 0, toMs: begin + 9 })).toEqual([]);
  });

  test("terms narrow a timeline and leave nothing out", async () => {
    const cid = uniqueCid();
    const begin = startMs();
    const records = Array.from({ length: 40 }, (_, i) => ({
      cid,
      id: ulid(begin + i, i),
      value: bytes(`${i % 2} ${i % 3}`),
      terms: [`a${i % 2}`, `b${i % 3}`],
    }));
    await append(...records);
    const request = { cid, fromMs: begin, toMs: begin + 100, terms: ["a1", "b2"] };
    const found = await all(3, (page) => objects().timeline(request, page));
    const checked = found.filter((record) => request.terms.every((term) => record.terms.includes(term)));
    const expected = records
      .filter((_, i) => i % 2 === 1 && i % 3 === 2)
      .map((record) => record.id)
      .reverse();
    expect(checked.map((record) => record.id)).toEqual(expected);
    const unknown = uniqueName("unknown");
    const others = await all(7, (page) => objects().timeline({ ...request, terms: [unknown] }, page));
    expect(others.filter((record) => record.terms.includes(unknown))).toEqual([]);
  });
}

/** Walks for values and counts. */
export function walksContract({ subject, objects, append, get, countOf, startMs }: RecordsSubject): void {
  test("records are counted by their times, removed ones and expired ones not among them", async () => {
    const cid = uniqueCid();
    const begin = startMs() - DAY_MS;
    const ids = Array.from({ length: 50 }, (_, i) => ulid(begin + i * 3_600_000, i));
    const record = (id: string): StoredRecord => ({ cid, id, value: bytes(id), terms: ["t"] });
    await append(...ids.filter((_, i) => i !== 7).map(record));
    await append({ cid, id: ids[3]!, value: bytes(ids[3]!), terms: ["more"] });
    const count = (from: number, to: number): Promise<number> =>
      countOf({ cid, fromMs: begin + from * 3_600_000, toMs: begin + to * 3_600_000 });
    expect(await count(0, 100)).toBe(49);
    expect([await count(2, 9), await count(30, 30), await count(45, 50)]).toEqual([6, 0, 5]);
    const doomed = [1, 4, 49].map((i) => ({ cid, id: ids[i]! }));
    await again(() => objects().removeRecords([...doomed, { cid, id: ulid(begin, 99) }]));
    expect([await count(0, 100), await count(2, 9), await count(45, 50)]).toEqual([46, 5, 4]);
    await append({ ...record(ids[7]!), expiresAtMs: subject().clock.nowMs() + TTL_MS });
    await passTime(subject(), TTL_MS + 1_000, async () => (await get(cid, ids[7]!)) === undefined);
    expect([await count(0, 100), await count(2, 9)]).toEqual([46, 5]);
    const span = { cid, fromMs: 0, toMs: 1 };
    await expect(again(() => objects().countRecords(span, "garbage"))).rejects.toMatchObject({
      code: "invalid",
    });
  });

  test("a walk for values alone finds the same records, page by page, with their values", async () => {
    const cid = uniqueCid();
    const ids = Array.from({ length: 9 }, (_, at) => ulid(startMs() + (at % 3), at));
    const longMs = subject().clock.nowMs() + DAY_MS;
    const records = ids.map((id, at): StoredRecord => {
      const value = at % 2 === 0 ? bytes(`v${at}`) : bytes(`v${at} ${"é".repeat(100 * at)}`);
      return { cid, id, value, terms: ["t", "x".repeat(300)], ...(at % 3 === 0 ? { expiresAtMs: longMs } : {}) };
    });
    await append(...records);
    await again(() => objects().removeRecords([records[4]!]));
    const request = { cid, fromMs: 0, toMs: startMs() + DAY_MS };
    const left = records.filter((_, at) => at !== 4).sort((a, b) => (a.id < b.id ? 1 : -1));
    for (const limit of [1, 4, 1_000])
      for (const terms of [[], ["t"]]) {
        const found = await all(limit, (page) => objects().timeline({ ...request, terms, valuesOnly: true }, page));
        expect(found.map(({ id, value }) => [id, text(value)])).toEqual(left.map(({ id, value }) => [id, text(value)]));
      }
  });
}

/** A fixed permutation. */
function shuffled<T>(items: readonly T[]): readonly T[] {
  return items
    .map((item, i) => ({ item, place: (i * 37) % items.length }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}
