import { CATALOG_FOLLOWERS_MAX } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";

/**
 * Times of writes in microseconds. Each is above the one before on this controller and above all that the writer has
 * read. Times of two controllers are never equal, as the remainder of each is the number of its controller.
 */
export class WriteClock {
  readonly #clock: Clock;
  readonly #number: () => number;
  #lastUs = 0;

  constructor(clock: Clock, number: () => number) {
    this.#clock = clock;
    this.#number = number;
  }

  nextUs(aboveUs = 0): number {
    const leastUs = Math.max(Math.floor(this.#clock.nowMs()) * 1_000, this.#lastUs + 1, aboveUs + 1);
    const remainder = leastUs % CATALOG_FOLLOWERS_MAX;
    this.#lastUs = leastUs + ((this.#number() - remainder + CATALOG_FOLLOWERS_MAX) % CATALOG_FOLLOWERS_MAX);
    return this.#lastUs;
  }
}
