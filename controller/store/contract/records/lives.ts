import { expect, test } from "vitest";
import type { StoredRecord } from "../../objects.ts";
import { bytes, passTime, uniqueCid } from "../harness.ts";
import { DAY_MS, type RecordsSubject, TTL_MS, ulid } from "./subject.ts";

/** A record that is appended with other lifetimes, and the end of each. */
export function recordLivesContract({ subject, append, timeline, get, countOf, startMs }: RecordsSubject): void {
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
}
