/** A number that increases with every change. Callers can wait for the next change. */
export class Changes {
  readonly #listeners = new Set<() => void>();
  #version = 0;

  get version(): number {
    return this.#version;
  }

  note(): void {
    this.#version++;
    for (const listener of [...this.#listeners]) listener();
  }

  /** Resolves when `version` is above `since`, or the signal fires. */
  after(since: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted || this.#version > since) return resolve();
      const done = () => {
        this.#listeners.delete(done);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      this.#listeners.add(done);
      signal?.addEventListener("abort", done, { once: true });
    });
  }
}
