import { Cron } from "croner";
import { expect, test } from "vitest";
import { Kept } from "../kept.ts";
import { SCHEDULES_KEPT } from "../limits.ts";
import { nextTimes, parseSchedule } from "./index.ts";

test("as many are kept as the bound says, what was made first is made anew, and what failed is not kept", () => {
  const made: number[] = [];
  const kept = new Kept(3, (key: number) => {
    made.push(key);
    if (key < 0) throw new Error("negative");
    return { key };
  });
  for (const key of [1, 2, 3, 3, 2, 1]) expect(kept.of(key)).toEqual({ key });
  expect(made).toEqual([1, 2, 3]);
  for (const key of [-1, -1]) expect(() => kept.of(key)).toThrow("negative");
  for (const key of [4, 2, 3, 4, 1]) expect(kept.of(key)).toEqual({ key });
  expect(made).toEqual([1, 2, 3, -1, -1, 4, 1]);
});

test("a schedule that was read is read again only after as many others as are kept", () => {
  // A zone that nothing else in this process reads them in.
  const read = (n: number) => parseSchedule(`${n % 60} ${Math.floor(n / 60)} 29 2 *`, "Pacific/Chatham");
  const first = read(0);
  for (let n = 1; n < SCHEDULES_KEPT; n++) read(n);
  expect(read(0)).toBe(first);
  read(SCHEDULES_KEPT);
  expect(read(0)).not.toBe(first);
});

test("the same text has times of its own in each zone, in whatever order it is asked", () => {
  const afterMs = Date.UTC(2026, 6, 1);
  const hours = { UTC: 12, "Europe/Berlin": 10, "Asia/Tokyo": 3 };
  for (const [zone, hour] of [...Object.entries(hours), ...Object.entries(hours)]) {
    expect(parseSchedule("0 12 * * *", zone)?.next(afterMs)).toBe(Date.UTC(2026, 6, 1, hour));
    expect(parseSchedule(`0 12 * * *;tz=${zone}`, "America/Lima")?.next(afterMs)).toBe(Date.UTC(2026, 6, 1, hour));
  }
});

test("patterns of all kinds of fields have the times that croner alone finds", () => {
  const fields = [
    ["0", "*/7", "5,59", "30-40"],
    ["*", "0", "13/20", "59", "1-5,58"],
    ["*", "0", "23", "*/5", "8-17", "3,22"],
    ["*", "1", "31", "L", "29", "*/9", "15W"],
    ["*", "2", "FEB-APR", "12", "*/3"],
    ["*", "MON-FRI", "0", "5#2", "7", "?", "+5"],
  ] as const;
  for (let n = 0; n < 400; n++) {
    const pattern = fields.map((texts, at) => texts[(n * (2 * at + 3) + Math.floor(n / (at + 2))) % texts.length]);
    const text = pattern.join(" ");
    const cron = new Cron(text, { paused: true, sloppyRanges: true, utcOffset: 0 });
    const afterMs = Date.UTC(2023, n % 12, 1 + (n % 31), n % 24, n % 60, n % 60, n % 2);
    const schedule = parseSchedule(text, "UTC");
    const expected = cron.nextRuns(4, new Date(afterMs)).map((date) => date.getTime());
    expect(schedule && nextTimes(schedule, afterMs, 4), text).toEqual(expected);
  }
});
