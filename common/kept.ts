/** Caches at most `max` values by key. When it is full, the value that was made first is removed. */
export class KeptBy<K, T> {
  readonly #max: number;
  readonly #made = new Map<K, T>();

  constructor(max: number) {
    this.#max = max;
  }

  /** If `make` throws, this throws too, and nothing is cached. */
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

/** As `KeptBy`, with one function that makes all values. */
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
