import { beforeEach, describe, expect, test } from "vitest";
import { CHANGE_BATCH_MAX } from "../../../common/limits.ts";
import { encodeTime } from "ulid";
import type { RecordSpan, StoredRecord, TimelineRequest } from "../objects.ts";
import { again, all, bytes, passTime, text, uniqueCid, uniqueName, type ContractSubject } from "./harness.ts";

const TTL_MS = 2_000;
const TIME_DIGITS = 10;
const DAY_MS = 24 * 3_600_000;

/** The part of the contract about records. */
export function recordsContract(subject: () => ContractSubject): void {
  describe("records", () => {
    const append = (...records: StoredRecord[]): Promise<void> => again(() => subject().store.objects.append(records));
    const timeline = async (request: TimelineRequest, limit = 100): Promise<readonly string[]> =>
      (await all(limit, (page) => subject().store.objects.timeline(request, page))).map((record) => record.id);
    const get = async (cid: number, id: string): Promise<StoredRecord | undefined> =>
      (await again(() => subject().store.objects.getRecords([{ cid, id }])))[0];
    const countOf = async (span: RecordSpan): Promise<number> => {
      let [sum, cursor] = [0, undefined as string | undefined];
      do {
        const part = await again(() => subject().store.objects.countRecords(span, cursor));
        sum += part.count;
        cursor = part.cursor;
      } while (cursor !== undefined);
      return sum;
    };
    /** The present time, so that engines which keep records by time read few times. */
    let begunMs = 0;
    beforeEach(() => {
      begunMs = Math.floor(subject().clock.nowMs() / 1_000) * 1_000;
    });
    /** The same whole second during one test. */
    const startMs = (): number => begunMs;

    test("a record is what was appended, and repeating that changes nothing", async () => {
      const record = { cid: uniqueCid(), id: ulid(startMs(), 1), value: bytes("line"), terms: ["word", "other"] };
      expect(await get(record.cid, record.id)).toBeUndefined();
      await append(record, record);
      await append(record);
      const found = await get(record.cid, record.id);
      expect({ ...found!, terms: [...found!.terms].sort() }).toEqual({ ...record, terms: ["other", "word"] });
      expect(await timeline({ cid: record.cid, fromMs: startMs() - DAY_MS, toMs: startMs() + DAY_MS })).toEqual([
        record.id,
      ]);
    });

    test("a record that is appended again with more terms is found by them, and by those it had", async () => {
      const record = { cid: uniqueCid(), id: ulid(startMs(), 1), value: bytes("line"), terms: ["word"] };
      await append(record);
      await append({ ...record, terms: ["word", "more"] });
      const whole = { cid: record.cid, fromMs: startMs() - DAY_MS, toMs: startMs() + DAY_MS };
      for (const term of record.terms.concat("more"))
        expect(await timeline({ ...whole, terms: [term] })).toEqual([record.id]);
      expect(await timeline(whole)).toEqual([record.id]);
    });

    test("a late repetition with fewer terms takes none away, and of the same bytes the later end stands", async () => {
      const endMs = startMs() + DAY_MS;
      const record = { cid: uniqueCid(), id: ulid(startMs(), 1), value: bytes("line"), terms: ["word", "more"] };
      await append({ ...record, expiresAtMs: endMs });
      await append({ ...record, terms: ["word"], expiresAtMs: endMs + DAY_MS });
      await append({ ...record, terms: ["other"], expiresAtMs: endMs });
      const whole = { cid: record.cid, fromMs: startMs() - DAY_MS, toMs: startMs() + DAY_MS };
      for (const term of ["word", "more", "other"])
        expect(await timeline({ ...whole, terms: [term] })).toEqual([record.id]);
      expect(await get(record.cid, record.id)).toMatchObject({ expiresAtMs: endMs + DAY_MS });
      await append({ ...record, terms: [] });
      await append({ ...record, terms: [], expiresAtMs: endMs });
      expect(await get(record.cid, record.id)).not.toHaveProperty("expiresAtMs");
      expect((await get(record.cid, record.id))!.terms).toEqual(expect.arrayContaining(["word", "more", "other"]));
    });

    test("of appends that differ under one id one stands whole, the same one in whatever order and however often", async () => {
      const cid = uniqueCid();
      const endMs = startMs() + DAY_MS;
      const rows = ["a", "b", "cc", "", "d"].map((name, at) => ({
        value: bytes(name),
        terms: [`t${name}`],
        ...(at % 2 === 0 ? { expiresAtMs: endMs + at * DAY_MS } : {}),
      }));
      for (const [at, pair] of rows.flatMap((one, i) => rows.slice(i + 1).map((other) => [one, other])).entries()) {
        const [one, other] = pair as [(typeof rows)[0], (typeof rows)[0]];
        const orders = [
          [one, other],
          [other, one],
          [one, other, one],
          [other, one, other, one, other],
        ];
        const standing = orders.map(async (order, n) => {
          const id = ulid(startMs() + at, at * orders.length + n);
          if (n < 2) await append(...order.map((row) => ({ cid, id, ...row })));
          else for (const row of order) await append({ cid, id, ...row });
          const { value, expiresAtMs, terms } = (await get(cid, id))!;
          return { value: text(value), expiresAtMs, terms };
        });
        const found = await Promise.all(standing);
        const stood = text(one.value) === found[0]!.value ? one : other;
        const { value, terms, expiresAtMs } = { expiresAtMs: undefined, ...stood };
        for (const row of found) {
          expect(row).toMatchObject({ value: text(value), expiresAtMs });
          expect(row.terms).toEqual(expect.arrayContaining(terms));
        }
      }
    });

    test("a record that is given other lives stays one: told and counted once, with the longest of them and all terms", async () => {
      const nowMs = startMs();
      const endsMs = [nowMs + DAY_MS, nowMs + 30 * DAY_MS, nowMs + 300 * DAY_MS, undefined];
      for (const order of [
        [0, 1, 2, 3],
        [3, 2, 1, 0],
        [0, 2, 1],
        [2, 0, 1, 0],
        [1, 0],
        [0, 1, 0],
      ]) {
        const cid = uniqueCid();
        const ids = [0, 1, 2].map((n) => ulid(nowMs + n, n));
        for (const life of order)
          await append(
            ...ids.map((id): StoredRecord => {
              const expiresAtMs = endsMs[life];
              const terms = ["all", `life${life}`];
              return { cid, id, value: bytes("line"), terms, ...(expiresAtMs !== undefined && { expiresAtMs }) };
            }),
          );
        const name = order.join();
        const whole = { cid, fromMs: nowMs - DAY_MS, toMs: nowMs + DAY_MS };
        const newestFirst = [...ids].reverse();
        for (const terms of [[], ["all"], ...order.map((life) => [`life${life}`])])
          for (const limit of [2, 100]) expect(await timeline({ ...whole, terms }, limit), name).toEqual(newestFirst);
        expect(await countOf(whole), name).toBe(ids.length);
        const found = (await get(cid, ids[1]!))!;
        expect(found.expiresAtMs, name).toBe(endsMs[Math.max(...order)]);
        expect([...found.terms].sort(), name).toEqual(["all", ...new Set(order.map((life) => `life${life}`))].sort());
      }
    });

    test("the end of a shorter life takes nothing of a longer one", async () => {
      const nowMs = startMs();
      const cid = uniqueCid();
      const record = { cid, id: ulid(nowMs, 1), value: bytes("line"), terms: ["t"] };
      const brief = { ...record, id: ulid(nowMs, 2), expiresAtMs: subject().clock.nowMs() + TTL_MS };
      await append({ ...record, expiresAtMs: brief.expiresAtMs }, brief);
      await append({ ...record, expiresAtMs: nowMs + 30 * DAY_MS });
      await passTime(subject(), TTL_MS + 1_000, async () => (await get(cid, brief.id)) === undefined);
      expect(await get(cid, record.id)).toMatchObject({ terms: ["t"], expiresAtMs: nowMs + 30 * DAY_MS });
      const whole = { cid, fromMs: nowMs - DAY_MS, toMs: nowMs + DAY_MS };
      for (const terms of [[], ["t"]]) expect(await timeline({ ...whole, terms })).toEqual([record.id]);
      expect(await countOf(whole)).toBe(1);
    });

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
        await again(() => subject().store.objects.removeRecords([early, ...gone]));
        for (const life of repeated) await append(...[early, ...gone].map((one) => ({ ...one, ...life })));
        const whole = { cid, fromMs: atMs - DAY_MS, toMs: atMs + DAY_MS };
        for (const terms of [[], ["t"]]) expect(await timeline({ ...whole, terms })).toEqual([other.id]);
        expect(await countOf(whole)).toBe(1);
        for (const { id } of [early, ...gone]) expect(await get(cid, id)).toBeUndefined();
      }
    });

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
      const found = await all(3, (page) => subject().store.objects.timeline(request, page));
      const checked = found.filter((record) => request.terms.every((term) => record.terms.includes(term)));
      const expected = records
        .filter((_, i) => i % 2 === 1 && i % 3 === 2)
        .map((record) => record.id)
        .reverse();
      expect(checked.map((record) => record.id)).toEqual(expected);
      const unknown = uniqueName("unknown");
      const others = await all(7, (page) => subject().store.objects.timeline({ ...request, terms: [unknown] }, page));
      expect(others.filter((record) => record.terms.includes(unknown))).toEqual([]);
    });

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
      await again(() => subject().store.objects.removeRecords([...doomed, { cid, id: ulid(begin, 99) }]));
      expect([await count(0, 100), await count(2, 9), await count(45, 50)]).toEqual([46, 5, 4]);
      await append({ ...record(ids[7]!), expiresAtMs: subject().clock.nowMs() + TTL_MS });
      await passTime(subject(), TTL_MS + 1_000, async () => (await get(cid, ids[7]!)) === undefined);
      expect([await count(0, 100), await count(2, 9)]).toEqual([46, 5]);
      const span = { cid, fromMs: 0, toMs: 1 };
      await expect(again(() => subject().store.objects.countRecords(span, "garbage"))).rejects.toMatchObject({
        code: "invalid",
      });
    });

    test("records are removed, and removing them again is fine", async () => {
      const cid = uniqueCid();
      const ids = [1, 2, 3].map((i) => ulid(startMs() + i, i));
      await append(...ids.map((id) => ({ cid, id, value: bytes(id), terms: ["t"] })));
      const doomed = [
        { cid, id: ids[1]! },
        { cid, id: ulid(startMs(), 9) },
      ];
      await again(() => subject().store.objects.removeRecords(doomed));
      await again(() => subject().store.objects.removeRecords(doomed));
      expect(await timeline({ cid, fromMs: 0, toMs: startMs() + DAY_MS, terms: ["t"] })).toEqual([ids[2], ids[0]]);
      expect(await again(() => subject().store.objects.getRecords(ids.map((id) => ({ cid, id }))))).toMatchObject([
        { id: ids[0] },
        undefined,
        { id: ids[2] },
      ]);
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
      await again(() => subject().store.objects.removeRecords([gone, early]));
      const expiresAtMs = subject().clock.nowMs() + DAY_MS;
      await append(gone, early, other);
      for (const value of ["second", "third", "fourth"].map(bytes))
        await append({ ...gone, value, terms: ["t", "more"] }, { ...gone, value, terms: ["t"], expiresAtMs });
      for (const terms of [[], ["t"], ["more"]]) {
        const found = await timeline({ cid, fromMs: 0, toMs: startMs() + DAY_MS, terms });
        expect(found.filter((id) => id !== other.id)).toEqual([]);
      }
      expect(await again(() => subject().store.objects.getRecords([gone, early, other]))).toMatchObject([
        undefined,
        undefined,
        { id: other.id },
      ]);
    });

    test("what was removed is rewritten, removed and rewritten again, and a repetition of before changes nothing", async () => {
      const cid = uniqueCid();
      const id = ulid(startMs(), 1);
      const whole = { cid, fromMs: startMs() - DAY_MS, toMs: startMs() + DAY_MS };
      const first = { cid, id, value: bytes("z first"), terms: ["first"] };
      const rewrittenUs = (startMs() + 1) * 1_000;
      await append(first);
      await again(() => subject().store.objects.removeRecords([{ cid, id }]));
      for (const [at, name] of ["second", "third", "a third"].entries()) {
        const row = { cid, id, value: bytes(name), terms: [name], rewrittenUs: rewrittenUs + at };
        await append(row);
        await append(first, row);
        expect(await get(cid, id)).toEqual(row);
        expect(await timeline({ ...whole, terms: [name] })).toEqual([id]);
        expect([await timeline(whole), await countOf(whole)]).toEqual([[id], 1]);
        // A removal that knew only an earlier state removes nothing of it.
        await again(() => subject().store.objects.removeRecords([{ cid, id, rewrittenUs: row.rewrittenUs - 1 }]));
        expect(await get(cid, id)).toEqual(row);
        await again(() => subject().store.objects.removeRecords([row]));
        await append(first, row);
        expect(await get(cid, id)).toBeUndefined();
        expect([await timeline({ ...whole, terms: [name] }), await countOf(whole)]).toEqual([[], 0]);
      }
      await expect(append({ ...first, rewrittenUs: rewrittenUs - 1 })).rejects.toMatchObject({ code: "invalid" });
    });

    test("of rows of one id the one that was rewritten last stands whole, with its own end, in whatever order", async () => {
      const cid = uniqueCid();
      const rewrittenUs = (startMs() + 1_000) * 1_000;
      const rows = ["z", "y", "a"].map((name, at) => ({
        value: bytes(name),
        terms: [name],
        ...(at === 0 ? {} : { rewrittenUs: rewrittenUs + at }),
        ...(at === 1 ? {} : { expiresAtMs: startMs() + (4 - at) * DAY_MS }),
      }));
      const orders = [
        [0, 1, 2],
        [2, 1, 0],
        [1, 2, 0, 1],
        [2, 0],
      ];
      for (const [at, order] of orders.entries()) {
        const id = ulid(startMs() + at, at);
        for (const row of order) await append({ cid, id, ...rows[row]! });
        const { value, expiresAtMs, terms, ...found } = (await get(cid, id))!;
        expect({ value: text(value), expiresAtMs, ...found }).toEqual({
          ...{ cid, id, value: "a" },
          ...{ expiresAtMs: startMs() + 2 * DAY_MS, rewrittenUs: rewrittenUs + 2 },
        });
        expect(terms).toContain("a");
      }
    });

    test("a record vanishes when its time has come", async () => {
      const cid = uniqueCid();
      const [brief, lasting] = [ulid(startMs(), 1), ulid(startMs(), 2)];
      const expiresAtMs = subject().clock.nowMs() + TTL_MS;
      await append(
        { cid, id: brief, value: bytes("b"), terms: ["t"], expiresAtMs },
        { cid, id: lasting, value: bytes("l"), terms: ["t"] },
      );
      expect(await get(cid, brief)).toBeDefined();
      await passTime(subject(), TTL_MS + 1_000, async () => (await get(cid, brief)) === undefined);
      expect(await get(cid, brief)).toBeUndefined();
      expect(await timeline({ cid, fromMs: 0, toMs: startMs() + DAY_MS })).toEqual([lasting]);
      expect(await timeline({ cid, fromMs: 0, toMs: startMs() + DAY_MS, terms: ["t"] })).toEqual([lasting]);
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
      await again(() => subject().store.objects.removeRecords([records[4]!]));
      const request = { cid, fromMs: 0, toMs: startMs() + DAY_MS };
      const left = records.filter((_, at) => at !== 4).sort((a, b) => (a.id < b.id ? 1 : -1));
      for (const limit of [1, 4, 1_000])
        for (const terms of [[], ["t"]]) {
          const found = await all(limit, (page) =>
            subject().store.objects.timeline({ ...request, terms, valuesOnly: true }, page),
          );
          expect(found.map(({ id, value }) => [id, text(value)])).toEqual(
            left.map(({ id, value }) => [id, text(value)]),
          );
        }
    });

    test("ids, batches and cursors are checked", async () => {
      const cid = uniqueCid();
      const record = { cid, id: "not a ulid", value: bytes("x"), terms: [] };
      await expect(append(record)).rejects.toMatchObject({ code: "invalid" });
      const many = Array.from({ length: CHANGE_BATCH_MAX + 1 }, (_, i) => ({ ...record, id: ulid(startMs(), i) }));
      await expect(append(...many)).rejects.toMatchObject({ code: "too_large" });
      const request = { cid, fromMs: 0, toMs: startMs() };
      await expect(
        again(() => subject().store.objects.timeline(request, { limit: 5, cursor: "garbage" })),
      ).rejects.toMatchObject({ code: "invalid" });
    });

    test("tenants do not see each other's records", async () => {
      const record = { cid: uniqueCid(), id: ulid(startMs(), 1), value: bytes("mine"), terms: ["t"] };
      await append(record);
      const other = subject().other.objects;
      expect(await again(() => other.getRecords([record]))).toEqual([undefined]);
      await again(() => other.removeRecords([record]));
      expect(text((await get(record.cid, record.id))!.value)).toBe("mine");
    });
  });
}

export function ulid(timeMs: number, number: number): string {
  return encodeTime(timeMs, TIME_DIGITS) + number.toString().padStart(16, "0");
}

/** A fixed permutation. */
function shuffled<T>(items: readonly T[]): readonly T[] {
  return items
    .map((item, i) => ({ item, place: (i * 37) % items.length }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}
