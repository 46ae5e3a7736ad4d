import { SIGN_IN_CACHE_MAX_ENTRIES, SIGN_IN_CACHE_MS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";

interface Entry<T> {
  readonly value: Promise<T | undefined>;
  readonly untilMs: number;
}

/**
 * Caches reads for a short time, so that a program that calls often does not load the store. A value is used for
 * `SIGN_IN_CACHE_MS` from the start of its read, and never longer, even while the store is unavailable. Writes made
 * through `written` are visible at once.
 */
export class RecentReads<T> {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry<T>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  read(key: string, load: () => Promise<T | undefined>): Promise<T | undefined> {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#entries.get(key);
    if (known !== undefined && nowMs < known.untilMs) return known.value;
    const entry = { value: load(), untilMs: nowMs + SIGN_IN_CACHE_MS };
    this.#keep(key, entry);
    // Only existing values are cached. Otherwise calls with unknown keys would push out the useful entries.
    const drop = (): void => void (this.#entries.get(key) === entry && this.#entries.delete(key));
    entry.value.then((value) => value === undefined && drop(), drop);
    return entry.value;
  }

  /**
   * Runs the write, and drops the cached value before and after it. A read that began before the end of the write may
   * have returned the old value.
   */
  async written<R>(key: string, write: () => Promise<R>): Promise<R> {
    this.#entries.delete(key);
    try {
      return await write();
    } finally {
      this.#entries.delete(key);
    }
  }

  /** Drops a value, because another writer may have changed it. */
  forget(key: string): void {
    this.#entries.delete(key);
  }

  forgetAll(): void {
    this.#entries.clear();
  }

  #keep(key: string, entry: Entry<T>): void {
    this.#entries.delete(key);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size >= SIGN_IN_CACHE_MAX_ENTRIES && oldest !== undefined) this.#entries.delete(oldest);
    this.#entries.set(key, entry);
  }
}
