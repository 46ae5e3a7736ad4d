/** Pieces of work side by side, at most `limit` of them. After a failure nothing more is begun. */
export class InFlight {
  readonly #limit: number;
  readonly #running = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | undefined;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Resolves when the work has begun, which waits for room. Throws what an earlier piece failed with. */
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

  /** When nothing is under way any more; throws the first failure. */
  async end(): Promise<void> {
    await Promise.all(this.#running);
    if (this.#failure) throw this.#failure.error;
  }
}
