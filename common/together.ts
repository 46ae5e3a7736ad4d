export interface TogetherOptions<T> {
  /** Pieces of work under way at once; what is asked for meanwhile waits, to go as one. */
  readonly lanes: number;
  /** Items of one piece. */
  readonly most: number;
  readonly work: (items: readonly T[]) => Promise<void>;
  /**
   * True for an error with which the work fails for each of its items. Otherwise each item is done alone, so that no
   * item fails by another's fault.
   */
  readonly failsAll: (error: unknown) => boolean;
}

interface Asked<T> {
  readonly item: T;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Does together what is asked for while others of its kind are done. Items may be done twice, those of a piece that
 * failed in any order; else they are begun in the order in which they were asked for.
 */
export class Together<T> {
  readonly #options: TogetherOptions<T>;
  #waiting: Asked<T>[] = [];
  #lanes = 0;

  constructor(options: TogetherOptions<T>) {
    this.#options = options;
  }

  /** Nothing is under way, and nothing waits. */
  get isIdle(): boolean {
    return this.#lanes === 0;
  }

  /** Resolves when it is done. */
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
      // Before anyone is told, who may then see that it is idle.
      if (isLast) this.#lanes -= 1;
      settle();
      if (isLast) return;
    }
  }

  /** Answers what tells those who asked. */
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
