/** A counting semaphore for concurrent work; waiters are served in the order of arrival. */
export class Places {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Takes a place if one is free; what is taken has to be given back by `leave`. */
  tryTake(): boolean {
    if (this.#free === 0) return false;
    this.#free -= 1;
    return true;
  }

  /** Calls back once a place was kept for the caller. The answer gives the wait up; it does nothing afterwards. */
  queue(taken: () => void): () => void {
    // Each wait is one of its own, also when the same function waits twice.
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
