import type { Duration, DurationUnit, Moment, Period, SearchField, Segment, Time, When } from "./ast.ts";

/** The period that the time segments of a search select. Times are milliseconds since 1970. */
export type TimeQuestion =
  /** Both ends included. */
  | { readonly kind: "range"; readonly fromMs: number; readonly toMs: number; readonly field: SearchField | undefined }
  /** Everything as it was at that time. */
  | { readonly kind: "state"; readonly atMs: number; readonly field: SearchField | undefined };

const DAY_MS = 86_400_000;
/** A month and a year are 30 and 365 days, as in the time to live of a class. */
const UNIT_MS: Readonly<Record<DurationUnit, number>> = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: DAY_MS,
  week: 7 * DAY_MS,
  month: 30 * DAY_MS,
  year: 365 * DAY_MS,
};
/** 1970 began on a Thursday; weeks begin on Monday (ISO 8601). */
const FIRST_MONDAY_MS = 4 * DAY_MS;

/** Absent without a time segment. Days, weeks, months and years are those of UTC. */
export function timeQuestion(segments: readonly Segment[], nowMs: number): TimeQuestion | undefined {
  const times = segments.filter((segment): segment is Time => segment.kind === "time");
  const calendar = times.flatMap(({ when }) => (when.kind === "at" || when.kind === "within" ? [] : [when]))[0];
  const field = times.find((time) => time.field)?.field;
  const moment = times.flatMap(({ when }) => (when.kind === "at" ? [when.moment] : []))[0];
  const within = times.flatMap(({ when }) =>
    when.kind === "within" ? [when.duration] : when.kind === "at" && when.within ? [when.within] : [],
  )[0];
  if (moment && !within) return { kind: "state", atMs: lastMs(moment), field };
  const range = within ? around(moment?.timeMs ?? nowMs, within) : calendar && rangeOf(calendar, nowMs);
  return range && { kind: "range", ...range, field };
}

interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

function rangeOf(when: Exclude<When, { kind: "at" | "within" }>, nowMs: number): Range {
  switch (when.kind) {
    case "period":
      return periodRange(when.name, nowMs);
    case "nearest":
      return { fromMs: nowMs - lengthMs(when.duration), toMs: nowMs };
    case "window":
      return { fromMs: when.from.timeMs, toMs: lastMs(when.to) };
  }
}

function around(timeMs: number, duration: Duration): Range {
  return { fromMs: timeMs - lengthMs(duration), toMs: timeMs + lengthMs(duration) };
}

function lengthMs({ amount, unit }: Duration): number {
  return amount * UNIT_MS[unit];
}

/** A day without a time of day means all of it; the state of a day is that at its end. */
function lastMs({ timeMs, isDay }: Moment): number {
  return isDay ? timeMs + DAY_MS - 1 : timeMs;
}

function periodRange(name: Period, nowMs: number): Range {
  const date = new Date(nowMs);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const today = Math.floor(nowMs / DAY_MS) * DAY_MS;
  const monday = Math.floor((nowMs - FIRST_MONDAY_MS) / UNIT_MS.week) * UNIT_MS.week + FIRST_MONDAY_MS;
  switch (name) {
    case "today":
      return upTo(today, today + DAY_MS);
    case "yesterday":
    case "last day":
      return upTo(today - DAY_MS, today);
    case "week":
      return upTo(monday, monday + UNIT_MS.week);
    case "last week":
      return upTo(monday - UNIT_MS.week, monday);
    case "month":
      return upTo(Date.UTC(year, month), Date.UTC(year, month + 1));
    case "last month":
      return upTo(Date.UTC(year, month - 1), Date.UTC(year, month));
    case "year":
      return upTo(Date.UTC(year, 0), Date.UTC(year + 1, 0));
    case "last year":
      return upTo(Date.UTC(year - 1, 0), Date.UTC(year, 0));
  }
}

function upTo(fromMs: number, endMs: number): Range {
  return { fromMs, toMs: endMs - 1 };
}
