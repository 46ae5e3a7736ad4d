/** Writes in flight, by the revision of the definitions they began with. */
export class InFlightWrites {
  readonly #counts = new Map<number, number>();
  #waiters: { readonly revision: number; readonly resolve: () => void }[] = [];

  /** Call the returned function once to end the write. */
  begin(revision: number): () => void {
    this.#counts.set(revision, (this.#counts.get(revision) ?? 0) + 1);
    return () => this.#end(revision);
  }

  /** Resolves when no write that began before `revision` is in flight, or when the signal fires. */
  drained(revision: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#isDrained(revision)) return Promise.resolve();
    return new Promise((resolve) => {
      const waiter = { revision, resolve: done };
      this.#waiters.push(waiter);
      signal.addEventListener("abort", done, { once: true });
      function done(): void {
        signal.removeEventListener("abort", done);
        resolve();
      }
    });
  }

  #end(revision: number): void {
    const left = (this.#counts.get(revision) ?? 1) - 1;
    if (left > 0) this.#counts.set(revision, left);
    else this.#counts.delete(revision);
    if (this.#waiters.length === 0) return;
    const ready = this.#waiters.filter((waiter) => this.#isDrained(waiter.revision));
    this.#waiters = this.#waiters.filter((waiter) => !ready.includes(waiter));
    for (const waiter of ready) waiter.resolve();
  }

  #isDrained(revision: number): boolean {
    for (const open of this.#counts.keys()) if (open < revision) return false;
    return true;
  }
}
