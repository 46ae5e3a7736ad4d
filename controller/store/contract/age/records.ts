import { encodeTime } from "ulid";
import { expect, test } from "vitest";
import type { StoredRecord } from "../../objects.ts";
import { again, all, bytes, counted, passTime, text, uniqueCid } from "../harness.ts";
import { AGE, type AgeSubject, BATCH, TIMEOUT_MS, TTL_MS } from "./subject.ts";

const RECORDS = 1_500 * AGE;
const TIME_DIGITS = 10;
const DAY_MS = 24 * 3_600_000;

/** Records among very many that were removed or have expired. */
export function agedRecordsContract({ subject, objects }: AgeSubject): void {
  test(
    "records between very many that were removed or have ended are read, counted and found",
    async () => {
      const cid = uniqueCid();
      const startMs = subject().clock.nowMs();
      const id = (n: number): string => encodeTime(startMs + n, TIME_DIGITS) + `${n}`.padStart(16, "0");
      const records = Array.from(
        { length: RECORDS },
        (_, n): StoredRecord => ({
          cid,
          id: id(n),
          value: bytes(`r${n}`),
          terms: ["all", n % 50 === 0 ? "stays" : "goes"],
          ...(n % 2 === 1 ? { expiresAtMs: subject().clock.nowMs() + TTL_MS } : {}),
        }),
      );
      for (let from = 0; from < RECORDS; from += BATCH)
        await again(() => objects().append(records.slice(from, from + BATCH)));
      const removed = records.filter((_, n) => n % 2 === 0 && n % 50 !== 0);
      for (let from = 0; from < removed.length; from += BATCH)
        await again(() => objects().removeRecords(removed.slice(from, from + BATCH)));
      await again(() => objects().append(removed.slice(0, BATCH)));
      const span = { cid, fromMs: startMs - DAY_MS, toMs: startMs + DAY_MS };
      const read = async (terms: readonly string[]): Promise<readonly string[]> =>
        (await all(40, (page) => objects().timeline({ ...span, terms }, page))).map(({ value }) => text(value));
      const staying = Array.from({ length: RECORDS / 50 }, (_, n) => `r${50 * n}`).reverse();
      await passTime(subject(), TTL_MS + 1_000, async () => (await read(["goes"])).length === 0);
      for (const terms of [[], ["all"], ["stays"]]) expect(await read(terms), terms.join()).toEqual(staying);
      expect(await counted((cursor) => objects().countRecords(span, cursor))).toBe(staying.length);
    },
    TIMEOUT_MS,
  );
}
