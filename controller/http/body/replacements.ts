/** Decoders of UTF-8 write it for bytes that they cannot decode. */
const REPLACEMENT = "\ufffd";
const ENCODED = Buffer.from(REPLACEMENT);

/** Counts U+FFFD in the UTF-8 bytes of a stream, also across two chunks. */
export class ReplacementCount {
  #count = 0;
  #tail = Buffer.alloc(0);

  get count(): number {
    return this.#count;
  }

  add(chunk: Buffer): void {
    const open = ENCODED.length - 1;
    // Too short for two sequences, so a sequence found here spans both chunks.
    this.#find(Buffer.concat([this.#tail, chunk.subarray(0, open)]));
    this.#find(chunk);
    this.#tail = Buffer.concat([this.#tail, chunk.subarray(-open)]).subarray(-open);
  }

  #find(bytes: Buffer): void {
    for (let at = bytes.indexOf(ENCODED); at !== -1; at = bytes.indexOf(ENCODED, at + ENCODED.length)) this.#count += 1;
  }
}

/**
 * Position of the first U+FFFD in the UTF-8 bytes of a text, counted from 1, and the number of all. 0 if there is none.
 */
export function replacementsOf(text: string): { readonly byte: number; readonly count: number } {
  const at = text.indexOf(REPLACEMENT);
  if (at === -1) return { byte: 0, count: 0 };
  return { byte: Buffer.byteLength(text.slice(0, at)) + 1, count: text.split(REPLACEMENT).length - 1 };
}
