import { CATALOG_FOLLOWERS_MAX } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";

/**
 * Times of writes in microseconds. Each is above all that the writer has read, so no two of one object are equal: two of
 * one controller take turns at it, and those of two controllers differ in their remainder, the number of each. Writes to
 * different objects may have the same time, or a busy controller would run ahead of its clock. A time that is given
 * before its write begins differs from all others of its controller, as nobody reads it at the object yet.
 */
export class WriteClock {
  readonly #clock: Clock;
  readonly #number: () => number;
  #greatestUs = 0;
  #presetUs = 0;

  constructor(clock: Clock, number: () => number) {
    this.#clock = clock;
    this.#number = number;
  }

  /** For a write that read `aboveUs` at the object and goes on at once. */
  nextUs(aboveUs = 0): number {
    return this.#given(Math.max(aboveUs, this.#presetUs));
  }

  /** For a write that is made later, of an object that others may write meanwhile; above all that were given so far. */
  presetUs(aboveUs = 0): number {
    this.#presetUs = this.#given(Math.max(aboveUs, this.#greatestUs));
    return this.#presetUs;
  }

  #given(aboveUs: number): number {
    const leastUs = Math.max(Math.floor(this.#clock.nowMs()) * 1_000, aboveUs + 1);
    const remainder = leastUs % CATALOG_FOLLOWERS_MAX;
    const timeUs = leastUs + ((this.#number() - remainder + CATALOG_FOLLOWERS_MAX) % CATALOG_FOLLOWERS_MAX);
    this.#greatestUs = Math.max(this.#greatestUs, timeUs);
    return timeUs;
  }
}
