/** A counting semaphore for concurrent work; waiters are served in the order of arrival. */
export class Places {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Takes a place if one is free. The caller must return it with `leave`. */
  tryTake(): boolean {
    if (this.#free === 0) return false;
    this.#free -= 1;
    return true;
  }

  /**
   * Calls back when a place is reserved for the caller. The returned function cancels the wait; after the call it has
   * no effect.
   */
  queue(taken: () => void): () => void {
    // A separate function per wait, even if the same callback waits twice.
    const waiter = (): void => taken();
    this.#waiting.add(waiter);
    return () => this.#waiting.delete(waiter);
  }

  leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
