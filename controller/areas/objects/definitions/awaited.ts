/** Callbacks that wait until a revision is known. */
export class AwaitedRevisions {
  readonly #waiting = new Set<{ readonly revision: number; readonly known: () => void }>();

  /** Calls back once, when that revision or a later one is known. Call the returned function to cancel. */
  until(revision: number, known: () => void): () => void {
    const wait = { revision, known };
    this.#waiting.add(wait);
    return () => this.#waiting.delete(wait);
  }

  tell(revision: number): void {
    for (const wait of [...this.#waiting]) {
      if (wait.revision > revision) continue;
      this.#waiting.delete(wait);
      wait.known();
    }
  }
}
