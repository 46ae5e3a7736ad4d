import { CALENDAR_UNITS } from "../../../../../common/calendar/steps.ts";
import { AppError } from "../../../../../common/errors.ts";
import type { Value } from "../../../../../common/value.ts";
import { dateAt, dateText } from "./calendar.ts";
import { STEPPINGS, steppedBy, zoneAt, zoneCounted } from "./calendar-steps.ts";
import { durationSeconds } from "./duration.ts";
import type { FunctionSpec, KindAt } from "./function.ts";
import { NUMBER, TEXT, TIME } from "../kind.ts";

export const TIME_FUNCTIONS: Readonly<Record<string, FunctionSpec>> = {
  year: part("year('2026-03-01 10:04:59')", "The year of the time.", (date) => date.getUTCFullYear()),
  month: part("month('2026-03-01 10:04:59')", "The month, 1 to 12.", (date) => date.getUTCMonth() + 1),
  day: part("day('2026-03-01 10:04:59')", "The day of the month, 1 to 31.", (date) => date.getUTCDate()),
  hour: part("hour('2026-03-01 10:04:59')", "The hour, 0 to 23.", (date) => date.getUTCHours()),
  minute: part("minute('2026-03-01 10:04:59')", "The minute, 0 to 59.", (date) => date.getUTCMinutes()),
  second: part("second('2026-03-01 10:04:59')", "The second, 0 to 59.", (date) => date.getUTCSeconds()),
  weekday: part(
    "weekday('2026-03-01')",
    "The day of the week: 1 is Monday, 7 is Sunday.",
    (date) => date.getUTCDay() || 7,
  ),
  time_text: part(
    "time_text('2026-07-01 10:04:59', 'Asia/Kolkata')",
    "The time as `YYYY-MM-DD HH:mm:ss.SSS`.",
    dateText,
    TEXT,
  ),
  bucket: {
    accepts: ["time", "text", "text"],
    least: 2,
    result: TIME,
    example: "cast(bucket('2026-03-01 10:04:59', '1 month', 'Europe/Berlin') AS text)",
    about:
      "The beginning of the step that the time lies in, such as '5 minutes' or '1 month', in a [zone](mql-times.md#zones).",
    make: (constants, zone) => steppedBy(STEPPINGS.bucket, constants, zone),
  },
  date_trunc: {
    accepts: ["text", "time", "text"],
    least: 2,
    result: TIME,
    example: "cast(date_trunc('quarter', '2026-03-01 10:04:59') AS text)",
    about: `The beginning of the ${CALENDAR_UNITS.join(", ")} that the time lies in, in a [zone](mql-times.md#zones).`,
    make: (constants, zone) => steppedBy(STEPPINGS.date_trunc, constants, zone),
  },
};

/**
 * A function of the date that clocks of the zone show, in the UTC fields of `date`. A value of type `date` has no time
 * of day, so no zone changes it.
 */
function part(example: string, about: string, make: (date: Date) => Value, result = NUMBER): FunctionSpec {
  return {
    accepts: ["time", "text"],
    least: 1,
    result,
    about: `${about} In UTC, or in the [zone](mql-times.md#zones) that is given.`,
    example,
    make(constants) {
      const zoneOf = zoneAt(constants, 1);
      return zoneCounted((values: readonly Value[], kindAt: KindAt) => {
        const [timeMs, zone] = [Number(values[0]), zoneOf(values)];
        const date = zone && dateAt(kindAt(0)?.type === "date" ? timeMs : timeMs + zone.offsetMs(timeMs));
        return date ? make(date) : null;
      });
    },
  };
}

/**
 * Milliseconds of a text such as `'5 minutes'`; a month has 30 days. Undefined for a value that is not a positive
 * duration.
 */
function durationMs(value: Value | undefined): number | undefined {
  const [amount = "", unit, ...more] = String(value).trim().split(/\s+/);
  const seconds = more.length === 0 && unit !== undefined ? durationSeconds(amount, unit) : undefined;
  return seconds !== undefined && seconds > 0 ? seconds * 1_000 : undefined;
}

export function requireDurationMs(value: Value): number {
  const widthMs = durationMs(value);
  if (widthMs !== undefined) return widthMs;
  throw new AppError(
    "invalid",
    `[Valid] ${JSON.stringify(value)} is no duration: a whole number and a unit, such as '5 minutes'.`,
  );
}
