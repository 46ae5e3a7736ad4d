import { POLICY_BACKOFF_FAILURES_MAX } from "../limits.ts";
import type { Random } from "../time.ts";

export interface BackoffOptions {
  /** Failures in a row, 1 or more. */
  readonly failures: number;
  /** Interval of the policy. */
  readonly intervalMs: number;
  readonly maxMs: number;
}

/**
 * Pause after failures: the interval, doubled for each failure and at most `maxMs`, less up to its half by chance. So
 * hosts that failed together do not try again together.
 */
export function backoffMs({ failures, intervalMs, maxMs }: BackoffOptions, random: Pick<Random, "next">): number {
  const pauseMs = intervalMs * 2 ** Math.min(failures, POLICY_BACKOFF_FAILURES_MAX);
  return Math.min(maxMs, pauseMs) * (1 - random.next() / 2);
}
