import { expect, test } from "vitest";
import { parseDate, parseTimestamp } from "./timestamps.ts";

test("years 1 to 9999 are those that are written, with their leap days", () => {
  const FIRST_MS = -62_135_596_800_000;
  expect(parseTimestamp("0001-01-01")).toBe(FIRST_MS);
  for (const year of [1, 4, 20, 99, 100, 400, 1899, 1900, 1970, 2000, 2026, 2100, 9999])
    for (const rest of ["01-01T00:00:00.000Z", "02-28T23:59:59.999Z", "03-01T12:34:56.789Z", "12-31T23:59:59.999Z"]) {
      const text = `${String(year).padStart(4, "0")}-${rest}`;
      expect(parseTimestamp(text), text).toBe(new Date(text).getTime());
      expect(parseDate(text)).toBe(text.slice(0, 10));
    }
  expect(["0004-02-29", "0096-02-29", "0400-02-29", "2000-02-29"].map(parseDate)).not.toContain(undefined);
});

test("days that there are not are no times, and no year is made of another one", () => {
  const texts = ["0000-01-01", "0001-02-29", "0100-02-29", "1900-02-29", "2026-13-01", "2026-00-01", "2026-04-31"];
  for (const text of texts) expect(parseTimestamp(text), text).toBeUndefined();
});

test("a time outside the years 1 to 9999 has no date", () => {
  const [first, last] = [-62_135_596_800_000, 253_402_300_799_999];
  expect([first, last].map(parseDate)).toEqual(["0001-01-01", "9999-12-31"]);
  expect([first - 1, last + 1, 8.64e15].map(parseDate)).toEqual([undefined, undefined, undefined]);
});
