/** Values that are kept by key, at most `max` of them; the one that was made first goes first. */
export class KeptBy<K, T> {
  readonly #max: number;
  readonly #made = new Map<K, T>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Throws what `make` throws, and then keeps nothing. */
  of(key: K, make: (key: K) => T): T {
    const known = this.#made.get(key);
    if (known !== undefined) return known;
    const value = make(key);
    const [oldest] = this.#made.size < this.#max ? [] : this.#made.keys();
    if (oldest !== undefined) this.#made.delete(oldest);
    this.#made.set(key, value);
    return value;
  }
}

/** As `KeptBy`, with values that are all made in one way. */
export class Kept<K, T> {
  readonly #kept: KeptBy<K, T>;
  readonly #make: (key: K) => T;

  constructor(max: number, make: (key: K) => T) {
    this.#kept = new KeptBy(max);
    this.#make = make;
  }

  of(key: K): T {
    return this.#kept.of(key, this.#make);
  }
}
