/** Runs jobs with the same key one after another, in the order of the calls. A job may have several keys. */
export class KeyedQueue {
  readonly #tails = new Map<string, Promise<void>>();

  /**
   * Runs the job when its turn comes. If the signal fires before, the job is not run, and the call rejects at once with
   * the reason of the signal. Later jobs still wait for the earlier ones.
   */
  async run<T>(keys: readonly string[], job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    // All keys are taken in one step, so no two jobs can wait for each other.
    const before = new Set(keys.flatMap((key) => this.#tails.get(key) ?? []));
    let release = (): void => undefined;
    const mine = new Promise<void>((resolve) => {
      release = resolve;
    });
    for (const key of keys) this.#tails.set(key, mine);
    const end = (): void => {
      release();
      for (const key of keys) if (this.#tails.get(key) === mine) this.#tails.delete(key);
    };
    if (before.size > 0) await turnOf(Promise.all(before), { signal, leave: end });
    try {
      return await job();
    } finally {
      end();
    }
  }
}

/** Resolves when the earlier jobs have ended. If the signal fires before, rejects at once, and calls `leave` then. */
function turnOf(
  earlier: Promise<unknown>,
  { signal, leave }: { readonly signal: AbortSignal | undefined; readonly leave: () => void },
): Promise<void> {
  return new Promise((resolve, reject) => {
    let isLeft = false;
    const abandon = (): void => {
      isLeft = true;
      reject(signal?.reason as Error);
    };
    void earlier.then(() => {
      signal?.removeEventListener("abort", abandon);
      if (isLeft) leave();
      else resolve();
    });
    if (signal?.aborted) abandon();
    else signal?.addEventListener("abort", abandon, { once: true });
  });
}
