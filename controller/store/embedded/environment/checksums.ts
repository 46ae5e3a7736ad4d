import { crc32 } from "node:zlib";

/**
 * A value with a checksum: its format byte with the highest bit set, the rest of the value, and four bytes of CRC-32
 * over the original value and its key. Environments of formats before 4 have values without checksums.
 */
const CHECKED = 0x80;
const SUM_BYTES = 4;

/** `isSound` false: adds a wrong checksum, for a value made from a damaged one. */
export function withChecksum(key: Uint8Array, value: Uint8Array, isSound = true): Buffer {
  const { length } = value;
  const sum = isSound ? checksumOf(key, value) : ~checksumOf(key, value);
  const bytes = Buffer.allocUnsafe(length + SUM_BYTES);
  bytes.set(value);
  bytes[0]! |= CHECKED;
  // Written by hand: `writeInt32BE` checks its arguments, which takes longer than the write.
  bytes[length] = sum >>> 24;
  bytes[length + 1] = sum >>> 16;
  bytes[length + 2] = sum >>> 8;
  bytes[length + 3] = sum;
  return bytes;
}

/** The checksum as a signed 32-bit number. */
function checksumOf(key: Uint8Array, value: Uint8Array): number {
  return crc32(key, crc32(value)) | 0;
}

/** Number of stored bytes that are the value; the value is at the beginning. */
export function valueLength(stored: Uint8Array): number {
  return hasChecksum(stored) ? Math.max(0, stored.length - SUM_BYTES) : stored.length;
}

/** Reads stored values one after another, and remembers the checksum of the last one. */
export class ValueReader {
  #kind: "none" | "whole" | "cut" = "none";
  /** A signed 32-bit number, so that a walk allocates no memory for it. */
  #sum = 0;

  /**
   * Copies the original value into `value`, whose length is `valueLength(stored)`. The library's buffer may be longer
   * than `stored.length`; only that many bytes are valid.
   */
  read(stored: Uint8Array, value: Buffer): Buffer {
    const { length } = value;
    value.set(stored.subarray(0, length));
    this.#kind = "none";
    if (!hasChecksum(stored)) return value;
    value[0]! &= ~CHECKED;
    this.#kind = length === 0 ? "cut" : "whole";
    this.#sum =
      (stored[length]! << 24) | (stored[length + 1]! << 16) | (stored[length + 2]! << 8) | stored[length + 3]!;
    return value;
  }

  /** True if the last value read, under that key, matches its checksum; `undefined` if it has no checksum. */
  isSound(key: Uint8Array, value: Uint8Array): boolean | undefined {
    if (this.#kind === "none") return undefined;
    return this.#kind === "whole" && this.#sum === checksumOf(key, value);
  }
}

function hasChecksum(stored: Uint8Array): boolean {
  return stored.length > 0 && (stored[0]! & CHECKED) !== 0;
}
