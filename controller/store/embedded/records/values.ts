import { decodeStored } from "../../format.ts";
import { PackedReader } from "../../packed-reader.ts";
import { valueLength, ValueReader } from "../environment/checksums.ts";

/** A stored record. A removed one has no value and no terms, and is forgotten at `expiresAtMs`. */
export type Packed = readonly [
  value: Uint8Array,
  terms: readonly string[],
  expiresAtMs: number,
  removed?: boolean,
  /** In a removal: `rewrittenUs` of the last row that it covers. */
  rewrittenUs?: number,
];

/** Length of a record that was neither removed nor rewritten. */
const PACKED_LENGTH = 3;

/**
 * Decodes records for walks that need only ids and values: neither keys nor terms become objects, and only the value is
 * copied out of the library's memory.
 */
export class RecordValues {
  /** Set right before a walk: records that have expired by then have no value. */
  nowMs = 0;
  readonly #reader = new PackedReader();
  readonly #whole = new ValueReader();

  readonly keys = {
    writeKey(key: Uint8Array, target: Buffer, start: number): number {
      target.set(key, start);
      return start + key.length;
    },
    /** The id, which is ASCII. */
    readKey: (bytes: Buffer, start: number, end: number): string => bytes.toString("latin1", start + CID_BYTES, end),
  };

  encode(value: Uint8Array): Uint8Array {
    return value;
  }

  /** `undefined` for a removed or expired record. */
  decode(bytes: Buffer): Buffer | undefined {
    const reader = this.#reader;
    reader.begin(bytes);
    const length = reader.list();
    const start = reader.binary();
    const end = reader.at;
    const isKnown = start >= 0 && reader.skip();
    const expiresAtMs = isKnown ? reader.scalar() : undefined;
    if (typeof expiresAtMs !== "number" || (length !== PACKED_LENGTH && reader.scalar() !== false))
      return this.#decoded(bytes);
    return this.#isOver(expiresAtMs) ? undefined : copied(bytes, start, end);
  }

  #decoded(bytes: Buffer): Buffer | undefined {
    const whole = this.#whole.read(bytes, Buffer.allocUnsafe(valueLength(bytes)));
    const [value, , expiresAtMs, removed] = decodeStored<Packed>(whole);
    return removed === true || this.#isOver(expiresAtMs) ? undefined : copied(value, 0, value.length);
  }

  #isOver(expiresAtMs: number): boolean {
    return expiresAtMs !== 0 && expiresAtMs <= this.nowMs;
  }
}

const CID_BYTES = 4;
/** Up to this length a copy byte by byte is faster than a native call. */
const SHORT_BYTES = 48;

function copied(bytes: Uint8Array, start: number, end: number): Buffer {
  const copy = Buffer.allocUnsafe(end - start);
  if (copy.length > SHORT_BYTES) copy.set(bytes.subarray(start, end));
  else for (let at = 0; at < copy.length; at += 1) copy[at] = bytes[start + at]!;
  return copy;
}
