import { TERM_MAX_BYTES } from "../../../common/limits.ts";

/** Terms as they are indexed: each once, those over the limit cut at a whole character. */
export function indexedTerms(terms: readonly string[]): string[] {
  return [...new Set(terms.map(cutTerm))];
}

function cutTerm(term: string): string {
  // A UTF-16 unit is at most three bytes.
  if (term.length * 3 <= TERM_MAX_BYTES || Buffer.byteLength(term) <= TERM_MAX_BYTES) return term;
  const bytes = Buffer.from(term);
  let end = TERM_MAX_BYTES;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}
