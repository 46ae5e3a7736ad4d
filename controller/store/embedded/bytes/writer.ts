import { SHORT_CHARACTERS, writeText } from "../../texts.ts";

const FIRST_BYTES = 4_096;
/** A character takes at most three bytes, and the length of a text this short takes one. */
const SHORT_MAX_BYTES = 1 + 3 * SHORT_CHARACTERS;

/**
 * Writes bytes one after another. Whole numbers up to 2^32 are written in groups of seven bits, lowest first, as many
 * as needed.
 */
export class ByteWriter {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  begin(): void {
    this.#length = 0;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  count(value: number): void {
    this.#reserve(5);
    let rest = value;
    for (; rest >= 0x80; rest >>>= 7) this.#bytes[this.#length++] = (rest & 0x7f) | 0x80;
    this.#bytes[this.#length++] = rest;
  }

  double(value: number): void {
    this.#reserve(8);
    this.#length = this.#bytes.writeDoubleBE(value, this.#length);
  }

  put(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** Writes the length in bytes, then the text in UTF-8. */
  text(text: string): void {
    if (text.length > SHORT_CHARACTERS) {
      const length = Buffer.byteLength(text);
      this.count(length);
      this.#reserve(length);
      this.#length = writeText(text, this.#bytes, this.#length);
    } else {
      this.#reserve(SHORT_MAX_BYTES);
      const start = this.#length + 1;
      const end = writeText(text, this.#bytes, start);
      this.#bytes[this.#length] = end - start;
      this.#length = end;
    }
  }

  /** Overwrites a byte that was written before. */
  setByte(value: number, at: number): void {
    this.#bytes[at] = value;
  }

  /** Overwrites bytes that were written before. */
  setUint32(value: number, at: number): void {
    this.#bytes.writeUInt32BE(value, at);
  }

  /** A copy of everything written since the beginning. */
  copy(): Buffer {
    const copy = Buffer.allocUnsafe(this.#length);
    this.#bytes.copy(copy, 0, 0, this.#length);
    return copy;
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const greater = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, this.#length + count));
    this.#bytes.copy(greater, 0, 0, this.#length);
    this.#bytes = greater;
  }
}
