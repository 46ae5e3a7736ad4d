/** Recently used values by name: at least the last `size` names, at most twice as many. */
export class RecentValues<T> {
  readonly #size: number;
  #young = new Map<string, T>();
  #old = new Map<string, T>();

  constructor(size: number) {
    this.#size = size;
  }

  get(name: string): T | undefined {
    const young = this.#young.get(name);
    if (young !== undefined) return young;
    const old = this.#old.get(name);
    if (old !== undefined) this.set(name, old);
    return old;
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
  }

  set(name: string, value: T): void {
    if (this.#young.size >= this.#size && !this.#young.has(name)) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(name, value);
  }
}
