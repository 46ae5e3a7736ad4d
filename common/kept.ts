/** What was made for the keys that came last, at most `max` of them; what was made first is left first. */
export class Kept<K, T> {
  readonly #max: number;
  readonly #make: (key: K) => T;
  readonly #made = new Map<K, T>();

  constructor(max: number, make: (key: K) => T) {
    this.#max = max;
    this.#make = make;
  }

  /** Throws what `make` throws; of that nothing is kept. */
  of(key: K): T {
    const known = this.#made.get(key);
    if (known !== undefined) return known;
    const value = this.#make(key);
    const [oldest] = this.#made.size < this.#max ? [] : this.#made.keys();
    if (oldest !== undefined) this.#made.delete(oldest);
    this.#made.set(key, value);
    return value;
  }
}
