import { CATALOG_FOLLOWERS_MAX } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";

/**
 * Times of writes in microseconds. Each is above all that the writer has read, so no two of one object are equal: two of
 * one controller take turns at it, and those of two controllers differ in their remainder, the number of each. Writes to
 * different objects may have the same time, or a busy controller would run ahead of its clock.
 */
export class WriteClock {
  readonly #clock: Clock;
  readonly #number: () => number;

  constructor(clock: Clock, number: () => number) {
    this.#clock = clock;
    this.#number = number;
  }

  nextUs(aboveUs = 0): number {
    const leastUs = Math.max(Math.floor(this.#clock.nowMs()) * 1_000, aboveUs + 1);
    const remainder = leastUs % CATALOG_FOLLOWERS_MAX;
    return leastUs + ((this.#number() - remainder + CATALOG_FOLLOWERS_MAX) % CATALOG_FOLLOWERS_MAX);
  }
}
