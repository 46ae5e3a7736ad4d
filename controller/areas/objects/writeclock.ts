import type { Clock, Random } from "../../../common/time.ts";

/** Times of writes in microseconds: of one controller each above the one before, and above what the writer has read. */
export class WriteClock {
  readonly #clock: Clock;
  /** Microseconds below the clock's millisecond: two controllers in the same one rarely meet. */
  readonly #offsetUs: number;
  #lastUs = 0;

  constructor(of: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = of.clock;
    this.#offsetUs = Math.floor(of.random.next() * 1_000);
  }

  nextUs(aboveUs = 0): number {
    this.#lastUs = Math.max(Math.floor(this.#clock.nowMs()) * 1_000 + this.#offsetUs, this.#lastUs + 1, aboveUs + 1);
    return this.#lastUs;
  }
}
