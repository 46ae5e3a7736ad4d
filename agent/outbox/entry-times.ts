import { OUTBOX_TIME_AHEAD_MAX_MS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import { makesRows, type EntryBody } from "./segment.ts";

/**
 * Gives each entry its time. Rows are ordered by time first, so each entry of rows is later than the one before. At the
 * limit, `OUTBOX_TIME_AHEAD_MAX_MS` ahead of the clock, times can be equal. A clock that was set back by more is
 * followed.
 */
export class EntryTimes {
  readonly #clock: Clock;
  #lastMs: number;

  /** `lastMs`: time of the last entry that became rows; 0 when there is none. */
  constructor(clock: Clock, lastMs: number) {
    this.#clock = clock;
    this.#lastMs = lastMs;
  }

  next(body: EntryBody): number {
    const nowMs = Math.floor(this.#clock.nowMs());
    if (!makesRows(body)) return nowMs;
    const aheadMs = this.#lastMs - nowMs;
    const isUsable = aheadMs >= 0 && aheadMs <= OUTBOX_TIME_AHEAD_MAX_MS;
    this.#lastMs = isUsable ? Math.min(this.#lastMs + 1, nowMs + OUTBOX_TIME_AHEAD_MAX_MS) : nowMs;
    return this.#lastMs;
  }
}
