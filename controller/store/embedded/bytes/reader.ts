import { decodeText } from "../../texts.ts";

/** Reads the bytes of a `ByteWriter` from one position on. */
export class ByteReader {
  readonly #bytes: Buffer;
  /** The next position. */
  at: number;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  byte(): number {
    return this.#bytes[this.at++]!;
  }

  count(): number {
    const bytes = this.#bytes;
    let byte = bytes[this.at++]!;
    let value = byte & 0x7f;
    for (let shift = 7; byte >= 0x80; shift += 7) {
      byte = bytes[this.at++]!;
      value |= (byte & 0x7f) << shift;
    }
    return value >>> 0;
  }

  double(): number {
    this.at += 8;
    return this.#bytes.readDoubleBE(this.at - 8);
  }

  text(): string {
    const length = this.count();
    this.at += length;
    return decodeText(this.#bytes, this.at - length, this.at);
  }

  /** The bytes in place, not a copy. */
  take(length: number): Uint8Array {
    this.at += length;
    return new Uint8Array(this.#bytes.buffer, this.#bytes.byteOffset + this.at - length, length);
  }
}
