import { CalendarSteps, type CalendarUnit } from "../calendar/steps.ts";
import type { Zone } from "../calendar/zones.ts";
import type { Duration, DurationUnit, Moment, Period, SearchField, Segment, Time, When } from "./ast.ts";

/** The period that the time segments of a search select. Times are milliseconds since 1970. */
export type TimeQuestion =
  /** Both ends are included. */
  | { readonly kind: "range"; readonly fromMs: number; readonly toMs: number; readonly field: SearchField | undefined }
  /** All objects as they were at that time. */
  | { readonly kind: "state"; readonly atMs: number; readonly field: SearchField | undefined };

const DAY_MS = 86_400_000;
/** Fixed lengths: a month has 30 days and a year 365, as in the time to live of a class. */
const UNIT_MS: Readonly<Record<DurationUnit, number>> = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: DAY_MS,
  week: 7 * DAY_MS,
  month: 30 * DAY_MS,
  year: 365 * DAY_MS,
};

/** The current time, and the zone of days, weeks, months and years. */
export interface Now {
  readonly nowMs: number;
  readonly zone: Zone;
}

/** `undefined` without a time segment. */
export function timeQuestion(segments: readonly Segment[], now: Now): TimeQuestion | undefined {
  const times = segments.filter((segment): segment is Time => segment.kind === "time");
  const calendar = times.flatMap(({ when }) => (when.kind === "at" || when.kind === "within" ? [] : [when]))[0];
  const field = times.find((time) => time.field)?.field;
  const moment = times.flatMap(({ when }) => (when.kind === "at" ? [when.moment] : []))[0];
  const within = times.flatMap(({ when }) =>
    when.kind === "within" ? [when.duration] : when.kind === "at" && when.within ? [when.within] : [],
  )[0];
  if (moment && !within) return { kind: "state", atMs: lastMs(moment, now.zone), field };
  const middleMs = moment ? firstMs(moment, now.zone) : now.nowMs;
  const range = within ? around(middleMs, within) : calendar && rangeOf(calendar, now);
  return range && { kind: "range", ...range, field };
}

interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

function rangeOf(when: Exclude<When, { kind: "at" | "within" }>, { nowMs, zone }: Now): Range {
  switch (when.kind) {
    case "period":
      return periodRange(when.name, { nowMs, zone });
    case "nearest":
      return { fromMs: nowMs - lengthMs(when.duration), toMs: nowMs };
    case "window":
      return { fromMs: firstMs(when.from, zone), toMs: lastMs(when.to, zone) };
  }
}

function around(timeMs: number, duration: Duration): Range {
  return { fromMs: timeMs - lengthMs(duration), toMs: timeMs + lengthMs(duration) };
}

function lengthMs({ amount, unit }: Duration): number {
  return amount * UNIT_MS[unit];
}

/** A day is counted in the zone. */
function firstMs({ timeMs, isDay }: Moment, zone: Zone): number {
  return isDay ? zone.reachedMs(timeMs) : timeMs;
}

/** A day without a time of day includes the whole day; the state of a day is the state at its end. */
function lastMs({ timeMs, isDay }: Moment, zone: Zone): number {
  return isDay ? zone.reachedMs(timeMs + DAY_MS) - 1 : timeMs;
}

function periodRange(name: Period, { nowMs, zone }: Now): Range {
  const { unit, isBefore } = PERIODS[name];
  const steps = new CalendarSteps({ count: 1, unit }, zone);
  const startMs = steps.startMs(nowMs);
  const fromMs = isBefore ? steps.startMs(startMs - 1) : startMs;
  return { fromMs, toMs: steps.nextMs(fromMs) - 1 };
}

/** Calendar units: the current one or the previous one. */
const PERIODS: Readonly<Record<Period, { readonly unit: CalendarUnit; readonly isBefore?: true }>> = {
  today: { unit: "day" },
  yesterday: { unit: "day", isBefore: true },
  "last day": { unit: "day", isBefore: true },
  week: { unit: "week" },
  "last week": { unit: "week", isBefore: true },
  month: { unit: "month" },
  "last month": { unit: "month", isBefore: true },
  year: { unit: "year" },
  "last year": { unit: "year", isBefore: true },
};
