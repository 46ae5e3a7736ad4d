import { expect, test } from "vitest";
import { again, bytes, text, uniqueCid } from "../harness.ts";
import { DAY_MS, type RecordsSubject, ulid } from "./subject.ts";

/** A record that is rewritten (`rewrittenUs`). */
export function rewrittenRecordsContract({ objects, append, timeline, get, countOf, startMs }: RecordsSubject): void {
  test("what was removed is rewritten, removed and rewritten again, and a repetition of before changes nothing", async () => {
    const cid = uniqueCid();
    const id = ulid(startMs(), 1);
    const whole = { cid, fromMs: startMs() - DAY_MS, toMs: startMs() + DAY_MS };
    const first = { cid, id, value: bytes("z first"), terms: ["first"] };
    const rewrittenUs = (startMs() + 1) * 1_000;
    await append(first);
    await again(() => objects().removeRecords([{ cid, id }]));
    for (const [at, name] of ["second", "third", "a third"].entries()) {
      const row = { cid, id, value: bytes(name), terms: [name], rewrittenUs: rewrittenUs + at };
      await append(row);
      await append(first, row);
      expect(await get(cid, id)).toEqual(row);
      expect(await timeline({ ...whole, terms: [name] })).toEqual([id]);
      expect([await timeline(whole), await countOf(whole)]).toEqual([[id], 1]);
      // A removal that names an earlier rewrite does not remove this row.
      await again(() => objects().removeRecords([{ cid, id, rewrittenUs: row.rewrittenUs - 1 }]));
      expect(await get(cid, id)).toEqual(row);
      await again(() => objects().removeRecords([row]));
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
}
