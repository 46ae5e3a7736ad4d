import { decodeText } from "./texts.ts";

/** Returned by `PackedReader.scalar` if the value is no text, number, boolean or null. */
export const NO_SCALAR: unique symbol = Symbol("no scalar");

type Scalar = string | number | boolean | null;

const FORMAT_BYTES = 1;

/**
 * Reads parts of a value from `encodePacked`. Skipped parts create no text and no object. It knows the MessagePack
 * forms of plain data. For any other form it reports that it cannot read it, and the caller decodes the whole value.
 */
export class PackedReader {
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;

  /** Begins at the format byte. */
  begin(bytes: Buffer, start = 0): void {
    this.#bytes = bytes;
    this.#at = start + FORMAT_BYTES;
  }

  /** Number of values in the list at the current position; -1 if there is no list. */
  list(): number {
    const code = this.#byte();
    if ((code & 0xf0) === 0x90) return code & 0x0f;
    if (code === 0xdc) return this.#uint16();
    return code === 0xdd ? this.#uint32() : -1;
  }

  /** Start of the bytes at the current position; afterwards the reader is at their end. -1 if there are no bytes. */
  binary(): number {
    const code = this.#byte();
    const length =
      code === 0xc4 ? this.#byte() : code === 0xc5 ? this.#uint16() : code === 0xc6 ? this.#uint32() : undefined;
    if (length === undefined) return -1;
    this.#at += length;
    return this.#at - length;
  }

  get at(): number {
    return this.#at;
  }

  scalar(): Scalar | typeof NO_SCALAR {
    const code = this.#byte();
    if (code < 0x80) return code;
    if (code >= 0xe0) return code - 0x100;
    if ((code & 0xe0) === 0xa0) return this.#text(code & 0x1f);
    switch (code) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xd9:
        return this.#text(this.#byte());
      case 0xda:
        return this.#text(this.#uint16());
      case 0xdb:
        return this.#text(this.#uint32());
      default:
        return this.#number(code);
    }
  }

  /** Skips one value. Returns false at an unknown form. */
  skip(): boolean {
    const code = this.#byte();
    if (code < 0x80 || code >= 0xe0) return true;
    if (code < 0x90) return this.#skipAll(2 * (code & 0x0f));
    if (code < 0xa0) return this.#skipAll(code & 0x0f);
    if (code < 0xc0) return this.#pass(code & 0x1f);
    switch (code) {
      case 0xc0:
      case 0xc2:
      case 0xc3:
        return true;
      case 0xc4:
      case 0xd9:
        return this.#pass(this.#byte());
      case 0xc5:
      case 0xda:
        return this.#pass(this.#uint16());
      case 0xc6:
      case 0xdb:
        return this.#pass(this.#uint32());
      case 0xdc:
        return this.#skipAll(this.#uint16());
      case 0xdd:
        return this.#skipAll(this.#uint32());
      case 0xde:
        return this.#skipAll(2 * this.#uint16());
      case 0xdf:
        return this.#skipAll(2 * this.#uint32());
      default:
        return this.#number(code) !== NO_SCALAR;
    }
  }

  #number(code: number): number | typeof NO_SCALAR {
    switch (code) {
      case 0xcc:
        return this.#byte();
      case 0xcd:
        return this.#uint16();
      case 0xce:
        return this.#uint32();
      case 0xd0:
        return (this.#byte() << 24) >> 24;
      case 0xd1:
        return (this.#uint16() << 16) >> 16;
      case 0xd2:
        return this.#uint32() | 0;
      case 0xcb:
        this.#at += 8;
        return this.#bytes.readDoubleBE(this.#at - 8);
      default:
        return NO_SCALAR;
    }
  }

  #skipAll(count: number): boolean {
    for (let left = count; left > 0; left -= 1) if (!this.skip()) return false;
    return true;
  }

  #pass(length: number): true {
    this.#at += length;
    return true;
  }

  #text(length: number): string {
    const start = this.#at;
    this.#at += length;
    return decodeText(this.#bytes, start, this.#at);
  }

  #byte(): number {
    return this.#bytes[this.#at++]!;
  }

  #uint16(): number {
    const at = this.#at;
    this.#at += 2;
    return (this.#bytes[at]! << 8) | this.#bytes[at + 1]!;
  }

  #uint32(): number {
    this.#at += 4;
    return this.#bytes.readUInt32BE(this.#at - 4);
  }
}
