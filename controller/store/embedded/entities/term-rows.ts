import type { Tables } from "../environment/environment.ts";
import { bytesText, concat, following, readU32, textBytes, u32 } from "../bytes/keys.ts";

export const FIRST_KEY = Uint8Array.of(0);
const FIRST_TERM = "\u0000";
const LENGTH_BYTES = 4;

export interface TermRow {
  readonly term: string;
  /** The key of the entity. */
  readonly bytes: Uint8Array;
}

/** Index rows of terms in their order, after a position from `placeOf`. */
export function* rowsOfTerms(terms: Tables["terms"], after: Uint8Array | undefined): Iterable<TermRow> {
  const begun = after === undefined ? undefined : placeIn(after);
  if (begun !== undefined)
    for (const bytes of terms.getValues(begun.term, { start: following(begun.bytes) }))
      yield { term: begun.term, bytes };
  for (const term of terms.getKeys({ start: begun?.term ?? FIRST_TERM })) {
    if (term === begun?.term) continue;
    for (const bytes of terms.getValues(term)) yield { term, bytes };
  }
}

export function placeOf(term: string, bytes: Uint8Array): Uint8Array {
  const text = textBytes(term);
  return concat(u32(text.length), text, bytes);
}

function placeIn(place: Uint8Array): TermRow {
  const end = LENGTH_BYTES + readU32(place, 0);
  return { term: bytesText(place.subarray(LENGTH_BYTES, end)), bytes: place.subarray(end) };
}
