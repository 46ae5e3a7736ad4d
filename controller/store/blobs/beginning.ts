/** A source of bytes that was read to its end, or further than the bound. */
export type Beginning =
  | { readonly isWhole: true; readonly bytes: Uint8Array }
  | {
      readonly isWhole: false;
      /** All bytes of the source, also those that were read. */
      readonly all: AsyncIterable<Uint8Array>;
      /** Tells the source that no more is read. Call it in any case. */
      readonly end: () => Promise<void>;
    };

/** Reads at most the piece in which a source grows beyond `maxBytes`. */
export async function beginningOf(
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
): Promise<Beginning> {
  const pieces = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  const begun = Buffer.allocUnsafe(maxBytes);
  let filled = 0;
  for (;;) {
    const next = await pieces.next();
    if (next.done === true) return { isWhole: true, bytes: begun.subarray(0, filled) };
    if (filled + next.value.length > maxBytes) {
      const read = [begun.subarray(0, filled), next.value];
      return { isWhole: false, all: joined(read, pieces), end: async () => void (await pieces.return?.()) };
    }
    // The source may use its memory again.
    begun.set(next.value, filled);
    filled += next.value.length;
  }
}

async function* joined(
  read: readonly Uint8Array[],
  rest: AsyncIterator<Uint8Array> | Iterator<Uint8Array>,
): AsyncIterable<Uint8Array> {
  yield* read;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
}
