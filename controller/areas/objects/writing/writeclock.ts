import { CATALOG_FOLLOWERS_MAX, WRITE_AHEAD_MAX_MS, WRITE_AHEAD_OBJECTS_MAX } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";

/** The latest time that an object ahead of the clock was given. */
interface AheadTime {
  readonly timeUs: number;
  /** How far that is above the time that was read of the object. */
  readonly stepUs: number;
}

/**
 * Times of writes in microseconds. A write takes the common time, which follows the clock alone. An object whose own
 * times have reached the common time gets one just above them, and moves no other object. Times of two controllers
 * differ in their remainder, the number of each. Writes to different objects may have the same time, or a busy
 * controller would run ahead of its clock. A time that is given before its write begins differs from all others that
 * this controller gives the object, because no reader sees it at the object yet.
 */
export class WriteClock {
  readonly #clock: Clock;
  readonly #number: () => number;
  #greatestUs = 0;
  #presetUs = 0;
  /** By object, the one given a time last at the end. */
  readonly #ahead = new Map<string, AheadTime>();
  /** The greatest step of the objects that no longer fit into `#ahead`. */
  #stepUs = 0;

  constructor(clock: Clock, number: () => number) {
    this.#clock = clock;
    this.#number = number;
  }

  /** The common time for concurrent writes. */
  nextUs(): number {
    return this.#common(false);
  }

  /** The common time for writes that are made later; above all common times so far, and those to come are above it. */
  presetUs(): number {
    this.#presetUs = this.#common(true);
    return this.#presetUs;
  }

  /**
   * The time of a write of one object, of which `lastUs` was read: the common one if that is above all of its times, or
   * else one just above them. `names`: what the object may be called, by which its times are told from those of others.
   */
  ofObject(names: readonly string[], lastUs: number, commonUs: number): number {
    if (lastUs < commonUs && this.#ahead.size === 0) return commonUs;
    const given = names.flatMap((name) => this.#ahead.get(name) ?? []);
    const knownUs = Math.max(lastUs, ...given.map(({ timeUs }) => timeUs));
    if (knownUs < commonUs) return commonUs;
    const aboveUs = given.length < names.length ? Math.max(knownUs, lastUs + this.#stepUs) : knownUs;
    // Far enough ahead, whole numbers are not exact any more.
    const timeUs = this.#numbered(aboveUs + (Number.isSafeInteger(aboveUs + 1) ? 1 : CATALOG_FOLLOWERS_MAX));
    for (const name of names) this.#remember(name, { timeUs, stepUs: timeUs - lastUs });
    return timeUs;
  }

  #common(isPreset: boolean): number {
    const nowUs = Math.floor(this.#clock.nowMs()) * 1_000;
    // A clock that was set back by more was wrong before: its times belong to the objects that were written by it.
    if (this.#greatestUs > nowUs + WRITE_AHEAD_MAX_MS * 1_000) [this.#greatestUs, this.#presetUs] = [0, 0];
    const aboveUs = isPreset ? this.#greatestUs : this.#presetUs;
    const timeUs = this.#numbered(Math.max(nowUs, aboveUs + 1));
    this.#greatestUs = Math.max(this.#greatestUs, timeUs);
    return timeUs;
  }

  /** The first time from there on with the number of this controller. */
  #numbered(leastUs: number): number {
    const remainder = leastUs % CATALOG_FOLLOWERS_MAX;
    return leastUs + ((this.#number() - remainder + CATALOG_FOLLOWERS_MAX) % CATALOG_FOLLOWERS_MAX);
  }

  /** Times that the common one has passed are not needed any more; of others that are left out, the step is kept. */
  #remember(name: string, given: AheadTime): void {
    this.#ahead.delete(name);
    this.#ahead.set(name, given);
    if (this.#ahead.size <= WRITE_AHEAD_OBJECTS_MAX) return;
    for (const [oldest, { timeUs, stepUs }] of this.#ahead) {
      this.#ahead.delete(oldest);
      if (timeUs >= this.#greatestUs) this.#stepUs = Math.max(this.#stepUs, stepUs);
      return;
    }
  }
}
