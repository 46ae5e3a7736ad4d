import {
  SIGN_IN_DELAY_MAX_MS,
  SIGN_IN_DELAY_MIN_MS,
  SIGN_IN_FORGET_MS,
  SIGN_IN_TABLE_MAX_ENTRIES,
} from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";

/**
 * Result of a check of a password or code. `half`: right, but a second factor is still needed; only this attempt is
 * forgiven.
 */
export type CheckOutcome = "right" | "half" | "wrong";

/** Waiting time after `count` failures; the first `free` failures cost none. */
export function delayMs(count: number, free: number): number {
  const over = count - free;
  return over <= 0 ? 0 : Math.min(SIGN_IN_DELAY_MAX_MS, SIGN_IN_DELAY_MIN_MS * 2 ** Math.min(over - 1, 30));
}

interface Failures {
  /** Failures, and attempts in progress. */
  count: number;
  underWay: number;
  lastMs: number;
  /**
   * End of the waiting time caused by failures. `underWayUntilMs` is its end if attempts in progress count as failures.
   */
  blockedUntilMs: number;
  underWayUntilMs: number;
}

/**
 * Failures on this controller, by the name of a counter. An attempt counts as failed from its start, so that parallel
 * attempts are all counted. The number of entries is bounded; the one with the oldest attempt is dropped first.
 */
export class LocalFailures {
  readonly #clock: Clock;
  /** Ordered by the latest attempt. */
  readonly #table = new Map<string, Failures>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  waitMs(name: string): number {
    const failures = this.#table.get(name);
    if (failures === undefined) return 0;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - failures.lastMs > SIGN_IN_FORGET_MS) this.#table.delete(name);
    else return Math.max(failures.blockedUntilMs, failures.underWayUntilMs) - nowMs;
    return 0;
  }

  underWay(name: string): number {
    return this.#table.get(name)?.underWay ?? 0;
  }

  /** Starts an attempt. Call the returned function with the outcome at its end. */
  begin(name: string, free: number): (outcome: CheckOutcome, forgivesAll: boolean) => void {
    const nowMs = this.#clock.monotonicMs();
    const failures = this.#table.get(name) ?? {
      count: 0,
      underWay: 0,
      lastMs: nowMs,
      blockedUntilMs: 0,
      underWayUntilMs: 0,
    };
    failures.count++;
    failures.underWay++;
    failures.lastMs = nowMs;
    const untilMs = nowMs + delayMs(failures.count, free);
    failures.underWayUntilMs = Math.max(failures.underWayUntilMs, untilMs);
    this.#table.delete(name);
    this.#table.set(name, failures);
    const [oldest] = this.#table.keys();
    if (this.#table.size > SIGN_IN_TABLE_MAX_ENTRIES && oldest !== undefined) this.#table.delete(oldest);
    return (outcome, forgivesAll) => {
      failures.underWay--;
      if (outcome === "wrong") failures.blockedUntilMs = Math.max(failures.blockedUntilMs, untilMs);
      else failures.count--;
      if (outcome === "right" && forgivesAll) Object.assign(failures, { count: failures.underWay, blockedUntilMs: 0 });
      if (failures.underWay === 0) failures.underWayUntilMs = 0;
      if (failures.count === 0 && this.#table.get(name) === failures) this.#table.delete(name);
    };
  }
}
