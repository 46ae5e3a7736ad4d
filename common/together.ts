export interface TogetherOptions<T> {
  /**
   * Maximum number of concurrent calls of `work`. Items that arrive meanwhile wait, and the next call takes them
   * together.
   */
  readonly lanes: number;
  /** Maximum number of items per call of `work`. */
  readonly most: number;
  readonly work: (items: readonly T[]) => Promise<void>;
  /**
   * True if the error applies to each item of the call. After any other error each item is tried alone, so that no item
   * fails because of another.
   */
  readonly failsAll: (error: unknown) => boolean;
}

interface Asked<T> {
  readonly item: T;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Collects the items that arrive while earlier ones are worked on, and works on them together. Items begin in the order
 * of the calls. If a call of `work` fails, its items may be worked on again, in any order.
 */
export class Together<T> {
  readonly #options: TogetherOptions<T>;
  #waiting: Asked<T>[] = [];
  #lanes = 0;

  constructor(options: TogetherOptions<T>) {
    this.#options = options;
  }

  /** True if no work runs and no item waits. */
  get isIdle(): boolean {
    return this.#lanes === 0;
  }

  /** Resolves when the work on the item has succeeded; rejects when it has failed. */
  do(item: T): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (this.#lanes < this.#options.lanes) void this.#lane();
    });
  }

  async #lane(): Promise<void> {
    this.#lanes += 1;
    for (;;) {
      const settle = await this.#piece(this.#waiting.splice(0, this.#options.most));
      const isLast = this.#waiting.length === 0;
      // Before the callers are notified, because they may then read `isIdle`.
      if (isLast) this.#lanes -= 1;
      settle();
      if (isLast) return;
    }
  }

  /** Returns the function that notifies the callers. */
  async #piece(asked: readonly Asked<T>[]): Promise<() => void> {
    try {
      await this.#options.work(asked.map(({ item }) => item));
      return () => asked.forEach(({ resolve }) => resolve());
    } catch (error) {
      if (asked.length === 1 || this.#options.failsAll(error))
        return () => asked.forEach(({ reject }) => reject(error));
      const settles = await Promise.all(asked.map((one) => this.#piece([one])));
      return () => settles.forEach((settle) => settle());
    }
  }
}
