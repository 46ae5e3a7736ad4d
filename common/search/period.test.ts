import { expect, test } from "vitest";
import { UTC_ZONE, type Zone, zoneNamed } from "../calendar/zones.ts";
import { parseSearch, timeQuestion } from "./index.ts";

/** A Wednesday. */
const NOW_MS = Date.UTC(2024, 1, 28, 10, 30, 15, 250);

function range(text: string, { nowMs, zone } = { nowMs: NOW_MS, zone: UTC_ZONE }): string | undefined {
  const question = timeQuestion(parseSearch(text).segments, { nowMs, zone });
  if (!question) return undefined;
  const times = question.kind === "state" ? [question.atMs] : [question.fromMs, question.toMs];
  return times.map((timeMs) => new Date(timeMs).toISOString().replace(/\.000Z$|Z$/, "")).join(" .. ");
}

test.each([
  ["today", "2024-02-28T00:00:00 .. 2024-02-28T23:59:59.999"],
  ["yesterday", "2024-02-27T00:00:00 .. 2024-02-27T23:59:59.999"],
  ["last day", "2024-02-27T00:00:00 .. 2024-02-27T23:59:59.999"],
  ["week", "2024-02-26T00:00:00 .. 2024-03-03T23:59:59.999"],
  ["last week", "2024-02-19T00:00:00 .. 2024-02-25T23:59:59.999"],
  ["month", "2024-02-01T00:00:00 .. 2024-02-29T23:59:59.999"],
  ["last month", "2024-01-01T00:00:00 .. 2024-01-31T23:59:59.999"],
  ["year", "2024-01-01T00:00:00 .. 2024-12-31T23:59:59.999"],
  ["last year", "2023-01-01T00:00:00 .. 2023-12-31T23:59:59.999"],
  ["nearest 15 minutes", "2024-02-28T10:15:15.250 .. 2024-02-28T10:30:15.250"],
  ["nearest 1month", "2024-01-29T10:30:15.250 .. 2024-02-28T10:30:15.250"],
  ["window 2024-01-01 12:30 to 2024-01-02", "2024-01-01T12:30:00 .. 2024-01-02T23:59:59.999"],
  ["at 2024-01-01 12:30 within 5min", "2024-01-01T12:25:00 .. 2024-01-01T12:35:00"],
  ["within 30seconds | x | at 2024-01-01 12:30", "2024-01-01T12:29:30 .. 2024-01-01T12:30:30"],
  ["within 1 hour", "2024-02-28T09:30:15.250 .. 2024-02-28T11:30:15.250"],
  ["at 2024-01-01 12:30", "2024-01-01T12:30:00"],
  ["at 2024-01-01", "2024-01-01T23:59:59.999"],
  ["x | top 1", undefined],
])("%s is the time %s", (text, expected) => {
  expect(range(text)).toBe(expected);
});

/** A Sunday evening in UTC, on which Berlin has Monday, 2026-03-30, the day after the one of 23 hours. */
test.each([
  ["today", "2026-03-29T22:00:00 .. 2026-03-30T21:59:59.999"],
  ["yesterday", "2026-03-28T23:00:00 .. 2026-03-29T21:59:59.999"],
  ["week", "2026-03-29T22:00:00 .. 2026-04-05T21:59:59.999"],
  ["last week", "2026-03-22T23:00:00 .. 2026-03-29T21:59:59.999"],
  ["month", "2026-02-28T23:00:00 .. 2026-03-31T21:59:59.999"],
  ["last month", "2026-01-31T23:00:00 .. 2026-02-28T22:59:59.999"],
  ["year", "2025-12-31T23:00:00 .. 2026-12-31T22:59:59.999"],
  ["last year", "2024-12-31T23:00:00 .. 2025-12-31T22:59:59.999"],
  ["nearest 1 day", "2026-03-28T22:30:00 .. 2026-03-29T22:30:00"],
  ["window 2026-03-28 to 2026-03-29", "2026-03-27T23:00:00 .. 2026-03-29T21:59:59.999"],
  ["window 2026-03-28 10:00 to 2026-03-29 10:00", "2026-03-28T10:00:00 .. 2026-03-29T10:00:00"],
  ["at 2026-03-30 within 1 hour", "2026-03-29T21:00:00 .. 2026-03-29T23:00:00"],
  ["at 2026-03-29", "2026-03-29T21:59:59.999"],
])("in Berlin %s is the time %s", (text, expected) => {
  const zone = zoneNamed("Europe/Berlin") as Zone;
  expect(range(text, { nowMs: Date.UTC(2026, 2, 29, 22, 30), zone })).toBe(expected);
});

test("a week begins on Monday, on a Sunday and a Monday too", () => {
  const week = (nowMs: number) => timeQuestion(parseSearch("week").segments, { nowMs, zone: UTC_ZONE });
  expect(week(Date.UTC(2024, 2, 3, 23))).toMatchObject({ fromMs: Date.UTC(2024, 1, 26) });
  expect(week(Date.UTC(2024, 2, 4))).toMatchObject({ fromMs: Date.UTC(2024, 2, 4) });
});

test("the field is the one that any of the time segments names", () => {
  expect(timeQuestion(parseSearch("today for ctime").segments, { nowMs: NOW_MS, zone: UTC_ZONE })).toMatchObject({
    field: { parts: ["ctime"] },
  });
  expect(
    timeQuestion(parseSearch("at 2024-01-01 | within 1 day for seen").segments, { nowMs: NOW_MS, zone: UTC_ZONE }),
  ).toMatchObject({
    kind: "range",
    field: { parts: ["seen"] },
  });
});
