import { AppError } from "../../../../common/errors.ts";
import { parseTimestamp } from "../../../../common/timestamps.ts";
import type { Value } from "../../../../common/value.ts";

const FRACTION_BELOW_MS = /[.,]\d{3}(\d{1,3})/;
/** The last time whose year has four digits, in microseconds. */
const LATEST_US = Date.UTC(9999, 11, 31, 23, 59, 59, 999) * 1_000 + 999;

/** A time as an export writes it, with microseconds: `2026-01-02T10:00:00.000123Z`. */
export function timeText(timeUs: number): string {
  const below = String(timeUs % 1_000).padStart(3, "0");
  return `${new Date(Math.floor(timeUs / 1_000)).toISOString().slice(0, -1)}${below}Z`;
}

/** Parses a time into microseconds since 1970. `AppError("invalid")` contains `name`, the purpose of the value. */
export function timeOf(name: string, value: Value): number {
  const timeMs = parseTimestamp(value);
  const below = typeof value === "string" ? (FRACTION_BELOW_MS.exec(value)?.[1] ?? "") : "";
  const timeUs = (timeMs ?? -1) * 1_000 + Number(below.padEnd(3, "0"));
  if (timeUs >= 0 && timeUs <= LATEST_US) return timeUs;
  throw new AppError(
    "invalid",
    `[Format] ${name} ${JSON.stringify(value)} is no time from 1970 up to 9999: YYYY-MM-DD HH:mm:ss.ffffff or milliseconds.`,
  );
}
