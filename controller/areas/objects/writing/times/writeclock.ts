import { CATALOG_FOLLOWERS_MAX, WRITE_AHEAD_MAX_MS, WRITE_AHEAD_OBJECTS_MAX } from "../../../../../common/limits.ts";
import type { Clock } from "../../../../../common/time.ts";

/** The latest time that was given to an object ahead of the clock. */
interface AheadTime {
  readonly timeUs: number;
  /** Distance of `timeUs` above the last time that was read of the object. */
  readonly stepUs: number;
}

/**
 * Gives the times of writes, in microseconds. A write normally takes the common time, which follows the clock alone. An
 * object whose last time is not below the common time gets a time just above its own. This does not move other objects.
 * Times of two controllers differ in their remainder, which is the number of the controller. Writes to different
 * objects may have the same time; otherwise a busy controller would run ahead of its clock. A time that is given before
 * its write differs from all others that this controller gives the object, because no reader sees it yet.
 */
export class WriteClock {
  readonly #clock: Clock;
  readonly #number: () => number;
  #greatestUs = 0;
  #presetUs = 0;
  /** By name of the object. The one that was given a time last is at the end. */
  readonly #ahead = new Map<string, AheadTime>();
  /** The greatest step of the objects that were evicted from `#ahead`. */
  #stepUs = 0;

  constructor(clock: Clock, number: () => number) {
    this.#clock = clock;
    this.#number = number;
  }

  /** The common time for concurrent writes. */
  nextUs(): number {
    return this.#common(false);
  }

  /**
   * The common time for writes that are made later. It is above all earlier common times, and later ones are above it.
   */
  presetUs(): number {
    this.#presetUs = this.#common(true);
    return this.#presetUs;
  }

  /**
   * The time for a write of one object whose last time `lastUs` was read. It is the common time if that is above all
   * times of the object, otherwise a time just above them. `names`: all names that the object may have; the given time
   * is kept under each.
   */
  ofObject(names: readonly string[], lastUs: number, commonUs: number): number {
    if (lastUs < commonUs && this.#ahead.size === 0) return commonUs;
    const given = names.flatMap((name) => this.#ahead.get(name) ?? []);
    const knownUs = Math.max(lastUs, ...given.map(({ timeUs }) => timeUs));
    if (knownUs < commonUs) return commonUs;
    const aboveUs = given.length < names.length ? Math.max(knownUs, lastUs + this.#stepUs) : knownUs;
    // So far ahead, a double does not hold every whole number.
    const timeUs = this.#numbered(aboveUs + (Number.isSafeInteger(aboveUs + 1) ? 1 : CATALOG_FOLLOWERS_MAX));
    for (const name of names) this.#remember(name, { timeUs, stepUs: timeUs - lastUs });
    return timeUs;
  }

  #common(isPreset: boolean): number {
    const nowUs = Math.floor(this.#clock.nowMs()) * 1_000;
    // A clock that was set back by more than `WRITE_AHEAD_MAX_MS` was wrong before. Only objects that were written then
    // keep its times.
    if (this.#greatestUs > nowUs + WRITE_AHEAD_MAX_MS * 1_000) [this.#greatestUs, this.#presetUs] = [0, 0];
    const aboveUs = isPreset ? this.#greatestUs : this.#presetUs;
    const timeUs = this.#numbered(Math.max(nowUs, aboveUs + 1));
    this.#greatestUs = Math.max(this.#greatestUs, timeUs);
    return timeUs;
  }

  /** The first time at or above `leastUs` whose remainder is the number of this controller. */
  #numbered(leastUs: number): number {
    const remainder = leastUs % CATALOG_FOLLOWERS_MAX;
    return leastUs + ((this.#number() - remainder + CATALOG_FOLLOWERS_MAX) % CATALOG_FOLLOWERS_MAX);
  }

  /**
   * Keeps at most `WRITE_AHEAD_OBJECTS_MAX` objects and evicts the oldest. If its time is not below the common time,
   * its step is kept in `#stepUs`.
   */
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
