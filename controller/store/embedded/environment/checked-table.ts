import type { Database, PutOptions, RangeIterable, RangeOptions } from "lmdb";
import { storeDamaged } from "../../damage.ts";
import { valueLength, ValueReader, withChecksum } from "./checksums.ts";

type Stored = Database<Uint8Array, Uint8Array>;

export interface CheckedRow {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  /** `undefined`: the value has no checksum, because a version before format 4 wrote it. */
  readonly isSound: boolean | undefined;
}

/**
 * Defines how the library reads and writes values. The library's buffer is overwritten by the next read, so values are
 * copied. `isShared`: copies of small values share blocks of memory.
 */
export class ValueCodec extends ValueReader {
  readonly #allocate: (length: number) => Buffer;

  constructor(isShared: boolean) {
    super();
    this.#allocate = isShared ? Buffer.allocUnsafe : Buffer.allocUnsafeSlow;
  }

  encode(value: Uint8Array): Uint8Array {
    return value;
  }

  decode(stored: Buffer): Buffer {
    return this.read(stored, this.#allocate(valueLength(stored)));
  }
}

/**
 * A named database whose values have checksums; readers and writers see values without them. `getSound`, `row` and
 * `rows` verify the checksums, `get` and `getRange` do not.
 */
export class CheckedTable {
  readonly #name: string;
  readonly #stored: Stored;
  readonly #codec: ValueCodec;
  #writes = 0;

  constructor(name: string, stored: Stored, codec: ValueCodec) {
    this.#name = name;
    this.#stored = stored;
    this.#codec = codec;
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#stored.get(key);
  }

  row(key: Uint8Array): CheckedRow | undefined {
    const value = this.#stored.get(key);
    return value && { key, value, isSound: this.#codec.isSound(key, value) };
  }

  /** `AppError("unavailable")` if the checksum is wrong. */
  getSound(key: Uint8Array): Uint8Array | undefined {
    const row = this.row(key);
    if (row?.isSound !== false) return row?.value;
    throw storeDamaged(
      `The value of ${shownKey(key)} in ${this.#name} is damaged: its checksum is wrong. Restore the data folder from a backup.`,
    );
  }

  doesExist(key: Uint8Array): boolean {
    return this.#stored.doesExist(key);
  }

  /**
   * Call it inside a write transaction. `isSound` false: the value was made from a damaged one. It gets a wrong
   * checksum, so that it stays recognizable as damaged.
   */
  put(key: Uint8Array, value: Uint8Array, isSound = true): void {
    this.#writes += 1;
    void this.#stored.put(key, withChecksum(key, value, isSound));
  }

  /** Call it inside a write transaction. Writes only if the key is absent; returns true if it wrote. */
  putNew(key: Uint8Array, value: Uint8Array): boolean {
    this.#writes += 1;
    // By its documentation, but not by its types, the library returns a boolean.
    const isNew: unknown = this.#stored.putSync(key, withChecksum(key, value), IF_NEW);
    return isNew === true;
  }

  /**
   * Call it inside a write transaction. Writes without a checksum, for values that versions before format 4 must read.
   */
  putPlain(key: Uint8Array, value: Uint8Array): void {
    this.#writes += 1;
    this.#stored.putSync(key, value);
  }

  /** Call it inside a write transaction. */
  remove(key: Uint8Array): void {
    this.#writes += 1;
    void this.#stored.remove(key);
  }

  getRange(options: RangeOptions): RangeIterable<{ key: Uint8Array; value: Uint8Array }> {
    return this.#stored.getRange(options);
  }

  getKeys(options: RangeOptions): RangeIterable<Uint8Array> {
    return this.#stored.getKeys(options);
  }

  getKeysCount(options: RangeOptions): number {
    return this.#stored.getKeysCount(options);
  }

  /** The number of rows by LMDB's own count. */
  get entryCount(): number {
    return (this.#stored.getStats() as { readonly entryCount: number }).entryCount;
  }

  /** Number of writes by this process, to detect writes between two moments. */
  get writes(): number {
    return this.#writes;
  }

  /** Rows with their checksums verified. */
  *rows(options: RangeOptions): Iterable<CheckedRow> {
    for (const { key, value } of this.#stored.getRange(options))
      yield { key, value, isSound: this.#codec.isSound(key, value) };
  }
}

const IF_NEW: PutOptions = { noOverwrite: true };
const KEY_SHOWN_BYTES = 48;

/** The key as text for people, at most `KEY_SHOWN_BYTES` of it. */
export function shownKey(key: Uint8Array): string {
  return JSON.stringify(Buffer.from(key.subarray(0, KEY_SHOWN_BYTES)).toString("latin1"));
}
