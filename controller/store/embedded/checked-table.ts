import type { Database, PutOptions, RangeIterable, RangeOptions } from "lmdb";
import { storeDamaged } from "../damage.ts";
import { valueLength, ValueReader, withChecksum } from "./checksums.ts";

type Stored = Database<Uint8Array, Uint8Array>;

export interface CheckedRow {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  /** `undefined`: it has no checksum, as it was written by a version before format 4. */
  readonly isSound: boolean | undefined;
}

/**
 * How the library is to read values: they lie in a buffer that the next read overwrites. `isShared`: copies of small
 * values share pieces of memory.
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
 * A named database whose values have checksums, as readers and writers see it: without them. Walks do not compare them,
 * as most of what they read is a row of many; `getSound`, `row` and `rows` do.
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

  /** `AppError("unavailable")` when it is not what was written. */
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
   * Inside a write transaction. `isSound` false: the value is made of a damaged one. It gets a checksum that is wrong, so
   * that it stays known.
   */
  put(key: Uint8Array, value: Uint8Array, isSound = true): void {
    this.#writes += 1;
    void this.#stored.put(key, withChecksum(key, value, isSound));
  }

  /** Inside a write transaction: whether the key was not there. Else nothing is written. */
  putNew(key: Uint8Array, value: Uint8Array): boolean {
    this.#writes += 1;
    // The library's types say less than its documentation: a boolean.
    const isNew: unknown = this.#stored.putSync(key, withChecksum(key, value), IF_NEW);
    return isNew === true;
  }

  /** Inside a write transaction: without a checksum, for what versions before format 4 must be able to read. */
  putPlain(key: Uint8Array, value: Uint8Array): void {
    this.#writes += 1;
    this.#stored.putSync(key, value);
  }

  /** Inside a write transaction. */
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

  /** How many rows LMDB has counted. */
  get entryCount(): number {
    return (this.#stored.getStats() as { readonly entryCount: number }).entryCount;
  }

  /** How often this process wrote, to be compared with another moment's. */
  get writes(): number {
    return this.#writes;
  }

  /** Compares each with its checksum. */
  *rows(options: RangeOptions): Iterable<CheckedRow> {
    for (const { key, value } of this.#stored.getRange(options))
      yield { key, value, isSound: this.#codec.isSound(key, value) };
  }
}

const IF_NEW: PutOptions = { noOverwrite: true };
const KEY_SHOWN_BYTES = 48;

/** For people: as a text, of which no more than that is shown. */
export function shownKey(key: Uint8Array): string {
  return JSON.stringify(Buffer.from(key.subarray(0, KEY_SHOWN_BYTES)).toString("latin1"));
}
