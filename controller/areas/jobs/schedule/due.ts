import { SCHEDULE_LATE_MS } from "../../../../common/limits.ts";
import { jitterMs, lastTime, type Schedule } from "../../../../common/schedule/index.ts";

/** The action that a schedule requires now. */
export type Due =
  /** No action before `atMs`; absent: none at all. */
  | { readonly kind: "wait"; readonly atMs?: number }
  /** Run the job for the time `dueMs`; the times from `missedFromMs` up to but not including `dueMs` are skipped. */
  | { readonly kind: "run"; readonly dueMs: number; readonly missedFromMs?: number }
  /** Skip the times from `missedFromMs` to `untilMs`, both included. */
  | { readonly kind: "skip"; readonly missedFromMs: number; readonly untilMs: number };

export interface DueTime {
  readonly name: string;
  /** All times up to this one have been decided. */
  readonly afterMs: number;
  readonly nowMs: number;
}

/**
 * The action for the first time after `afterMs`. A time is missed if it was due more than `SCHEDULE_LATE_MS` ago,
 * jitter included. For a missed time, the setting `missed` of the schedule decides; the answer may then cover several
 * times.
 */
export function dueOf(schedule: Schedule, { name, afterMs, nowMs }: DueTime): Due {
  const firstMs = schedule.next(afterMs);
  if (firstMs === undefined) return { kind: "wait" };
  const atMs = firstMs + jitterMs(schedule, name, firstMs);
  if (atMs > nowMs) return { kind: "wait", atMs };
  if (schedule.missed === "all" || nowMs - atMs <= SCHEDULE_LATE_MS) return { kind: "run", dueMs: firstMs };
  const untilMs = schedule.missed === "last" ? nowMs : nowMs - SCHEDULE_LATE_MS;
  const lastMs = lastTime(schedule, { afterMs, untilMs }) ?? firstMs;
  if (schedule.missed === "skip") return { kind: "skip", missedFromMs: firstMs, untilMs: lastMs };
  return lastMs === firstMs ? { kind: "run", dueMs: firstMs } : { kind: "run", dueMs: lastMs, missedFromMs: firstMs };
}
