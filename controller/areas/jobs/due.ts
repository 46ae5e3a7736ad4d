import { SCHEDULE_LATE_MS } from "../../../common/limits.ts";
import { jitterMs, lastTime, type Schedule } from "../../../common/schedule/index.ts";

/** What a schedule asks for now. */
export type Due =
  /** Nothing before `atMs`; absent: nothing any more. */
  | { readonly kind: "wait"; readonly atMs?: number }
  /** The run of `dueMs`; times from `missedFromMs` up to before it are left out. */
  | { readonly kind: "run"; readonly dueMs: number; readonly missedFromMs?: number }
  /** Times from `missedFromMs` to `untilMs` are left out. */
  | { readonly kind: "skip"; readonly missedFromMs: number; readonly untilMs: number };

export interface Moment {
  readonly name: string;
  /** Times up to this one are decided. */
  readonly afterMs: number;
  readonly nowMs: number;
}

/**
 * The first time that is not decided, or several at once where the first was missed: it came longer ago than
 * `SCHEDULE_LATE_MS`, jitter included.
 */
export function dueOf(schedule: Schedule, { name, afterMs, nowMs }: Moment): Due {
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
