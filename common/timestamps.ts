import type { Value } from "./value.ts";

const DAY_MS = 86_400_000;
/** 400 years. */
const CYCLE_MS = 146_097 * DAY_MS;
const FIRST_DAY_MS = -62_135_596_800_000;
const LAST_DAY_MS = 253_402_300_799_999;
/** Latest time that has a calendar date. */
const TIME_MAX_MS = 8.64e15;
const DATE_TIME =
  /^(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?\s*(Z|[+-]\d{2}:?\d{2})?$/;

/**
 * Milliseconds since 1970. `value` is a number of milliseconds, or a text `YYYY-MM-DD[ HH:mm[:ss[.SSS]]][zone]`, in UTC
 * if it has no zone. `undefined` for anything else.
 */
export function parseTimestamp(value: Value): number | undefined {
  if (typeof value === "number")
    return Number.isFinite(value) && Math.abs(value) <= TIME_MAX_MS ? Math.trunc(value) : undefined;
  if (typeof value !== "string") return undefined;
  const text = value.trim();
  if (/^-?\d{5,16}$/.test(text)) return parseTimestamp(Number(text));
  const match = DATE_TIME.exec(text);
  return match === null ? undefined : fromParts(match);
}

/** `YYYY-MM-DD` of a date or timestamp in the years 1 to 9999; `undefined` for anything else. */
export function parseDate(value: Value): string | undefined {
  const timeMs = parseTimestamp(value);
  if (timeMs === undefined || timeMs < FIRST_DAY_MS || timeMs > LAST_DAY_MS) return undefined;
  return new Date(Math.floor(timeMs / DAY_MS) * DAY_MS).toISOString().slice(0, 10);
}

function fromParts(match: RegExpExecArray): number | undefined {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((part) => Number(part ?? 0));
  if (year === 0) return undefined;
  // `Date.UTC` would read the years 0 to 99 as 1900 to 1999. The calendar repeats after 400 years, so another year is
  // used.
  const alike = 2_000 + (year % 400);
  const timeMs = Date.UTC(alike, month - 1, day, hour, minute, second) + ((year - alike) / 400) * CYCLE_MS;
  // `Date.UTC` would turn a day or an hour that does not exist into another one.
  const back = new Date(timeMs);
  const real = back.getUTCMonth() === month - 1 && back.getUTCDate() === day && hour < 24 && minute < 60 && second < 60;
  if (!real) return undefined;
  const fractionMs = Math.trunc(Number(`0.${match[7] ?? "0"}`) * 1_000 + 1e-9);
  return timeMs + fractionMs - zoneMs(match[8]);
}

function zoneMs(zone: string | undefined): number {
  if (zone === undefined || zone === "Z") return 0;
  const digits = zone.replace(/[+:-]/g, "");
  const minutes = Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2, 4));
  return (zone.startsWith("-") ? -1 : 1) * minutes * 60_000;
}
