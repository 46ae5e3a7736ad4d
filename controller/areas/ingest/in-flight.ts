/** Runs up to `limit` pieces of work concurrently. After a failure no more work is started. */
export class InFlight {
  readonly #limit: number;
  readonly #running = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | undefined;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Waits for a free place, then starts the work without waiting for its end. Throws the error of an earlier failure.
   */
  async begin(work: () => Promise<void>): Promise<void> {
    while (this.#running.size >= this.#limit) await Promise.race(this.#running);
    if (this.#failure) throw this.#failure.error;
    const running = work().then(
      () => void this.#running.delete(running),
      (error: unknown) => {
        this.#failure ??= { error };
        this.#running.delete(running);
      },
    );
    this.#running.add(running);
  }

  /** Resolves when all started work has ended; throws the first failure. */
  async end(): Promise<void> {
    await Promise.all(this.#running);
    if (this.#failure) throw this.#failure.error;
  }
}
