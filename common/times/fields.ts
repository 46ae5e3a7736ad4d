import { DAY_MS, daysInMonth, daysOf, firstMonday, isLeapYear, weeksInYear, yearOf } from "./calendar.ts";
import type { ReadTime, TimeContext, TimeFields } from "./types.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const YEAR_MAX = 9_999;
/** Between two leap years are at most seven other years. */
const YEARS_AROUND = 8;

/** Milliseconds of the digits after the decimal point. */
export function millisecondsOf(digits: string): number {
  return Number(digits.padEnd(3, "0").slice(0, 3));
}

/** The time of the fields. Missing parts come from the context. */
export function timeOf(fields: TimeFields, { zone: zoneless, nearMs }: TimeContext): ReadTime {
  const ofDayMs = timeOfDay(fields);
  if (typeof ofDayMs !== "number") return ofDayMs;
  const zone = fields.zone ?? zoneless;
  const { year, weekYear } = fields;
  if (year !== undefined || weekYear !== undefined) {
    const days = dayOf(fields, year ?? weekYear ?? 0);
    return typeof days === "number" ? zone.momentMs(days * DAY_MS + ofDayMs, nearMs) : days;
  }
  const nearLocalMs = nearMs + zone.offsetMs(nearMs);
  const isDateless = fields.month === undefined && fields.dayOfYear === undefined;
  const days = isDateless ? nearestDay(nearLocalMs, ofDayMs) : nearestYear(fields, nearLocalMs, ofDayMs);
  return typeof days === "number" ? zone.momentMs(days * DAY_MS + ofDayMs, nearMs) : days;
}

function timeOfDay({ hour, hour12, isAfternoon, minute = 0, second = 0, milliseconds = 0 }: TimeFields): ReadTime {
  if (hour12 !== undefined && (hour12 < 1 || hour12 > 12)) return { reason: `has no hour ${hour12} of 12` };
  const hours = hour ?? (hour12 === undefined ? 0 : (hour12 % 12) + (isAfternoon === true ? 12 : 0));
  if (hours > 23) return { reason: `has no hour ${hours}` };
  if (minute > 59) return { reason: `has no minute ${minute}` };
  if (second > 60) return { reason: `has no second ${second}` };
  return hours * HOUR_MS + minute * MINUTE_MS + second * 1_000 + milliseconds;
}

/** Days from 1970 to the date. */
function dayOf({ month = 1, day = 1, dayOfYear, weekYear, week = 1, weekday = 1 }: TimeFields, year: number): ReadTime {
  if (year < 1 || year > YEAR_MAX) return { reason: `has no year from 1 to ${YEAR_MAX}` };
  if (weekYear !== undefined) {
    if (week < 1 || week > weeksInYear(year)) return { reason: `has no week ${week} of ${year}` };
    if (weekday < 1 || weekday > 7) return { reason: `has no day ${weekday} of a week` };
    return firstMonday(year) + (week - 1) * 7 + weekday - 1;
  }
  if (dayOfYear !== undefined) {
    if (dayOfYear < 1 || dayOfYear > (isLeapYear(year) ? 366 : 365))
      return { reason: `has no day ${dayOfYear} of ${year}` };
    return daysOf(year, 1, 1) + dayOfYear - 1;
  }
  if (month < 1 || month > 12) return { reason: `has no month ${month}` };
  if (day < 1 || day > daysInMonth(year, month)) return { reason: `has no day ${day} in that month` };
  return daysOf(year, month, day);
}

/** The day on which the time of day is nearest to `nearLocalMs`. */
function nearestDay(nearLocalMs: number, ofDayMs: number): number {
  return Math.round((nearLocalMs - ofDayMs) / DAY_MS);
}

/** The day of the date in the year in which it is nearest to `nearLocalMs`. */
function nearestYear(fields: TimeFields, nearLocalMs: number, ofDayMs: number): ReadTime {
  const near = yearOf(nearLocalMs);
  let best: ReadTime | undefined;
  let leastMs = Infinity;
  for (let away = 0; away <= YEARS_AROUND; away += 1) {
    // A year further away cannot be nearer than one found at most one year away.
    if (away > 1 && leastMs < Infinity) break;
    for (const year of away === 0 ? [near] : [near - away, near + away]) {
      const days = dayOf(fields, year);
      const farMs = typeof days === "number" ? Math.abs(days * DAY_MS + ofDayMs - nearLocalMs) : Infinity;
      if (best === undefined || farMs < leastMs) [best, leastMs] = [days, farMs];
    }
  }
  return best ?? { reason: "has no date" };
}
