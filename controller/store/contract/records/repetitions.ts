import { expect, test } from "vitest";
import { bytes, text, uniqueCid } from "../harness.ts";
import { DAY_MS, type RecordsSubject, ulid } from "./subject.ts";

/** A record that is appended again, with other terms or another end. */
export function repeatedRecordsContract({ append, timeline, get, startMs }: RecordsSubject): void {
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
}

/** Different records under one id. */
export function differingRecordsContract({ append, get, startMs }: RecordsSubject): void {
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
}
