/**
 * Runs work for keys, at most `most` at once and never twice at once for one key. A key that is added while its work
 * runs is worked on again. Holds each key once, so it is bounded by the number of keys.
 */
export class HostQueue {
  readonly #most: number;
  readonly #work: (key: string) => Promise<void>;
  readonly #waiting = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();

  /** `work` must not throw. */
  constructor(most: number, work: (key: string) => Promise<void>) {
    this.#most = most;
    this.#work = work;
  }

  add(key: string): void {
    this.#waiting.add(key);
    this.#fill();
  }

  /** Drops the keys whose work has not begun. */
  clear(): void {
    this.#waiting.clear();
  }

  /** Resolves when no work runs or waits. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.race(this.#running.values());
  }

  #fill(): void {
    for (const key of this.#waiting) {
      if (this.#running.size >= this.#most) return;
      if (this.#running.has(key)) continue;
      this.#waiting.delete(key);
      const done = this.#work(key).finally(() => {
        this.#running.delete(key);
        this.#fill();
      });
      this.#running.set(key, done);
    }
  }
}
