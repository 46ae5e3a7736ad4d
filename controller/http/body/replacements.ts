/** Decoders of UTF-8 put it in the place of bytes that they cannot read. */
const REPLACEMENT = "\ufffd";
const ENCODED = Buffer.from(REPLACEMENT);

/** Counts U+FFFD in the UTF-8 bytes of a stream, wherever it is cut. */
export class ReplacementCount {
  #count = 0;
  #tail = Buffer.alloc(0);

  get count(): number {
    return this.#count;
  }

  add(chunk: Buffer): void {
    const open = ENCODED.length - 1;
    // Shorter than two sequences together: what is found here lies across the cut.
    this.#find(Buffer.concat([this.#tail, chunk.subarray(0, open)]));
    this.#find(chunk);
    this.#tail = Buffer.concat([this.#tail, chunk.subarray(-open)]).subarray(-open);
  }

  #find(bytes: Buffer): void {
    for (let at = bytes.indexOf(ENCODED); at !== -1; at = bytes.indexOf(ENCODED, at + ENCODED.length)) this.#count += 1;
  }
}

/** Where the first U+FFFD of a text is, as the number of its byte from 1, and how many there are. */
export function replacementsOf(text: string): { readonly byte: number; readonly count: number } {
  const at = text.indexOf(REPLACEMENT);
  if (at === -1) return { byte: 0, count: 0 };
  return { byte: Buffer.byteLength(text.slice(0, at)) + 1, count: text.split(REPLACEMENT).length - 1 };
}
