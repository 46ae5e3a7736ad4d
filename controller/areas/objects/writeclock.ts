import type { Clock } from "../../../common/time.ts";

/** Times of writes in microseconds: of one controller each above the one before, and above what the writer has read. */
export class WriteClock {
  readonly #clock: Clock;
  #lastUs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  nextUs(aboveUs = 0): number {
    this.#lastUs = Math.max(Math.floor(this.#clock.nowMs()) * 1_000, this.#lastUs + 1, aboveUs + 1);
    return this.#lastUs;
  }
}
