/** Runs actions on one name one after another, and on different names in parallel. */
export class ActionsByName {
  readonly #last = new Map<string, Promise<void>>();

  take<T>(name: string, action: () => Promise<T>): Promise<T> {
    const result = (this.#last.get(name) ?? Promise.resolve()).then(action);
    const settled: Promise<void> = result
      .then(
        () => undefined,
        () => undefined,
      )
      .then(() => {
        if (this.#last.get(name) === settled) this.#last.delete(name);
      });
    this.#last.set(name, settled);
    return result;
  }

  /** Resolves when all started actions have ended. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}
