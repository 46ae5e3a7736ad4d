const FIRST_BYTES = 4_096;
/** In shorter texts going through the characters is cheaper than a call into the engine. */
const SHORT_CHARACTERS = 48;
const ASCII_END = 0x80;

/** Bytes one after the other. Whole numbers up to 2^32 take as many groups of seven bits as they need, the lowest first. */
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

  /** Its length in bytes, then the text in UTF-8. */
  text(text: string): void {
    if (text.length <= SHORT_CHARACTERS && this.#ascii(text)) return;
    const length = Buffer.byteLength(text);
    this.count(length);
    this.#reserve(length);
    this.#length += this.#bytes.write(text, this.#length, "utf8");
  }

  /** Writes into what was written already. */
  setUint32(value: number, at: number): void {
    this.#bytes.writeUInt32BE(value, at);
  }

  /** A copy of what was written since the beginning. */
  copy(): Buffer {
    const copy = Buffer.allocUnsafe(this.#length);
    this.#bytes.copy(copy, 0, 0, this.#length);
    return copy;
  }

  /** False, and nothing is written, when it has other characters. */
  #ascii(text: string): boolean {
    this.#reserve(1 + text.length);
    const bytes = this.#bytes;
    const start = this.#length + 1;
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code >= ASCII_END) return false;
      bytes[start + at] = code;
    }
    bytes[this.#length] = text.length;
    this.#length = start + text.length;
    return true;
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const greater = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, this.#length + count));
    this.#bytes.copy(greater, 0, 0, this.#length);
    this.#bytes = greater;
  }
}
