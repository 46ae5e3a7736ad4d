/** Runs jobs with the same key one after another, in the order of the calls. A job may have several keys. */
export class KeyedQueue {
  readonly #tails = new Map<string, Promise<void>>();

  async run<T>(keys: readonly string[], job: () => Promise<T>): Promise<T> {
    // All keys are taken in one step, so no two jobs can wait for each other.
    const before = new Set(keys.flatMap((key) => this.#tails.get(key) ?? []));
    let release = (): void => undefined;
    const mine = new Promise<void>((resolve) => {
      release = resolve;
    });
    for (const key of keys) this.#tails.set(key, mine);
    try {
      if (before.size > 0) await Promise.all(before);
      return await job();
    } finally {
      release();
      for (const key of keys) if (this.#tails.get(key) === mine) this.#tails.delete(key);
    }
  }
}
