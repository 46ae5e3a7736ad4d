import { SIGN_IN_CACHE_MAX_ENTRIES, SIGN_IN_CACHE_MS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import type { Evidence, EvidenceList } from "../../../store/evidence.ts";

class Entry<T> implements Evidence {
  readonly value: Promise<T | undefined>;
  readonly #untilMs: number;
  #isDropped = false;

  constructor(value: Promise<T | undefined>, untilMs: number) {
    this.value = value;
    this.#untilMs = untilMs;
  }

  isCurrent(nowMs: number): boolean {
    return !this.#isDropped && nowMs < this.#untilMs;
  }

  drop(): void {
    this.#isDropped = true;
  }
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

  /** `evidence` gets the cached value. */
  read(key: string, load: () => Promise<T | undefined>, evidence?: EvidenceList): Promise<T | undefined> {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#entries.get(key);
    const entry = known?.isCurrent(nowMs) ? known : this.#begin(key, new Entry(load(), nowMs + SIGN_IN_CACHE_MS));
    evidence?.push(entry);
    return entry.value;
  }

  #begin(key: string, entry: Entry<T>): Entry<T> {
    this.#keep(key, entry);
    // Only existing values are cached. Otherwise calls with unknown keys would push out the useful entries.
    const drop = (): void => void (this.#entries.get(key) === entry && this.forget(key));
    entry.value.then((value) => value === undefined && drop(), drop);
    return entry;
  }

  /**
   * Runs the write, and drops the cached value before and after it. A read that began before the end of the write may
   * have returned the old value.
   */
  async written<R>(key: string, write: () => Promise<R>): Promise<R> {
    this.forget(key);
    try {
      return await write();
    } finally {
      this.forget(key);
    }
  }

  /** Drops a value, because another writer may have changed it. */
  forget(key: string): void {
    this.#entries.get(key)?.drop();
    this.#entries.delete(key);
  }

  forgetAll(): void {
    for (const key of this.#entries.keys()) this.forget(key);
  }

  #keep(key: string, entry: Entry<T>): void {
    this.forget(key);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size >= SIGN_IN_CACHE_MAX_ENTRIES && oldest !== undefined) this.forget(oldest);
    this.#entries.set(key, entry);
  }
}
