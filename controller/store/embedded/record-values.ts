import { decodeStored } from "../format.ts";
import { PackedReader } from "../packed-reader.ts";
import { valueLength, ValueReader } from "./checksums.ts";

/** What was removed has no value and no terms, and is forgotten at `expiresAtMs`. */
export type Packed = readonly [
  value: Uint8Array,
  terms: readonly string[],
  expiresAtMs: number,
  removed?: boolean,
  /** Of what was removed: of the last row that the removal covers. */
  rewrittenUs?: number,
];

/** Of what was neither removed nor rewritten. */
const PACKED_LENGTH = 3;

/**
 * The records once more for walks that look at ids and values alone: neither keys nor terms become anything, and of a
 * record nothing but its value is copied out of the library's memory.
 */
export class RecordValues {
  /** Set right before a walk: what has ended by then has no value. */
  nowMs = 0;
  readonly #reader = new PackedReader();
  readonly #whole = new ValueReader();

  readonly keys = {
    writeKey(key: Uint8Array, target: Buffer, start: number): number {
      target.set(key, start);
      return start + key.length;
    },
    /** The id, which is in ASCII. */
    readKey: (bytes: Buffer, start: number, end: number): string => bytes.toString("latin1", start + CID_BYTES, end),
  };

  encode(value: Uint8Array): Uint8Array {
    return value;
  }

  /** `undefined` for what was removed or has ended. */
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
/** So few bytes are copied faster one by one than by a call out of the engine. */
const SHORT_BYTES = 48;

function copied(bytes: Uint8Array, start: number, end: number): Buffer {
  const copy = Buffer.allocUnsafe(end - start);
  if (copy.length > SHORT_BYTES) copy.set(bytes.subarray(start, end));
  else for (let at = 0; at < copy.length; at += 1) copy[at] = bytes[start + at]!;
  return copy;
}
