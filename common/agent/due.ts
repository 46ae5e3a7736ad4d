import type { CommandPolicySpec } from "../api/policies.ts";

type Unit = CommandPolicySpec["unit"];

/**
 * Due times of a policy: multiples of its interval since 1970-01-01, in UTC. Months and years are those of the
 * calendar.
 */
export interface Schedule {
  readonly interval: number;
  readonly unit: Unit;
}

const UNIT_MS: Readonly<Partial<Record<Unit, number>>> = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
};
const EPOCH_YEAR = 1970;

/** The first due time after `timeMs`. */
export function dueAfter(schedule: Schedule, timeMs: number): number {
  const unitMs = UNIT_MS[schedule.unit];
  if (unitMs !== undefined) return (Math.floor(timeMs / (unitMs * schedule.interval)) + 1) * unitMs * schedule.interval;
  return timeOf(schedule, indexAt(schedule, timeMs) + 1);
}

/**
 * Number of due times after `fromMs` and up to `toMs`, with the first and the last of them. Undefined when there is
 * none.
 */
export function dueBetween(
  schedule: Schedule,
  fromMs: number,
  toMs: number,
): { count: number; firstMs: number; lastMs: number } | undefined {
  const firstMs = dueAfter(schedule, fromMs);
  if (firstMs > toMs) return undefined;
  const unitMs = UNIT_MS[schedule.unit];
  if (unitMs !== undefined) {
    const stepMs = unitMs * schedule.interval;
    const lastMs = Math.floor(toMs / stepMs) * stepMs;
    return { count: (lastMs - firstMs) / stepMs + 1, firstMs, lastMs };
  }
  const first = indexAt(schedule, firstMs);
  const last = indexAt(schedule, toMs);
  return { count: last - first + 1, firstMs, lastMs: timeOf(schedule, last) };
}

/** Number of the last due time at or before `timeMs`. */
function indexAt({ interval, unit }: Schedule, timeMs: number): number {
  const date = new Date(timeMs);
  const years = date.getUTCFullYear() - EPOCH_YEAR;
  return Math.floor((unit === "year" ? years : years * 12 + date.getUTCMonth()) / interval);
}

function timeOf({ interval, unit }: Schedule, index: number): number {
  const timeMs = unit === "year" ? Date.UTC(EPOCH_YEAR + index * interval, 0) : Date.UTC(EPOCH_YEAR, index * interval);
  // The time is beyond the latest time of a `Date`.
  return Number.isNaN(timeMs) ? Infinity : timeMs;
}
