/** Wakes all waiters at the next event. */
export class Wakeup {
  #waiting = new Set<() => void>();

  /** Resolves at the next `wake`, or when the signal fires. */
  next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#waiting.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      this.#waiting.add(done);
      signal.addEventListener("abort", done, { once: true });
    });
  }

  wake(): void {
    for (const done of [...this.#waiting]) done();
  }
}
