import { TERM_MAX_BYTES } from "../../common/limits.ts";

/** The indexed form of terms: each once; a term over `TERM_MAX_BYTES` is cut at a whole character. */
export function indexedTerms(terms: readonly string[]): readonly string[] {
  // Most records have few, short and distinct terms; then nothing must be copied.
  if (terms.length <= FEW_TERMS && terms.every((term, at) => isShort(term) && terms.indexOf(term) === at)) return terms;
  return [...new Set(terms.map(cutTerm))];
}

const CLASS_TERM = /^[cs]\d+$/;

/**
 * True if the term names a class, in the forms `c17` and `s17`. An entity gets such terms at birth and keeps them while
 * it lives; millions of entities may share one.
 */
export function isClassTerm(term: string): boolean {
  return CLASS_TERM.test(term);
}

/** Prefix of terms for words, as in `wdisk`. An engine may list no other terms. */
export const WORD_MARK = "w";

export function isWordTerm(term: string): boolean {
  return term.startsWith(WORD_MARK);
}

/** Up to this number, comparing all pairs is cheaper than a set. */
const FEW_TERMS = 8;

/** A UTF-16 unit takes at most three bytes. */
function isShort(term: string): boolean {
  return term.length * 3 <= TERM_MAX_BYTES;
}

function cutTerm(term: string): string {
  if (isShort(term) || Buffer.byteLength(term) <= TERM_MAX_BYTES) return term;
  const bytes = Buffer.from(term);
  let end = TERM_MAX_BYTES;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}
