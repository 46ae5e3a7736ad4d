import { AppError, type ErrorCode } from "../errors.ts";
import { NEAREST_MAX_CHARACTERS, NEAREST_MAX_NAMES } from "../limits.ts";
import { FUZZY_CHANGES_MAX, isWithin } from "./distance.ts";

/** Letters of the longer of two words from which on two changes count: two of a short word make it another one. */
const LONG_WORD_LETTERS = 6;

/**
 * The name that was probably meant by `word`: one change away, or `FUZZY_CHANGES_MAX` if one of both has at least
 * `LONG_WORD_LETTERS`, ignoring case. Of equally near names the first. At most `NEAREST_MAX_NAMES` names of about the same length are compared; a word of more than
 * `NEAREST_MAX_CHARACTERS` is no typing error.
 */
export function nearestName(word: string, names: Iterable<string>): string | undefined {
  if (word.length > NEAREST_MAX_CHARACTERS) return undefined;
  const wanted = Array.from(word.toLowerCase());
  let nearest: string | undefined;
  let most = Math.min(FUZZY_CHANGES_MAX, wanted.length - 1);
  let compared = 0;
  for (const name of names) {
    if (most < 0 || compared === NEAREST_MAX_NAMES) break;
    if (Math.abs(name.length - word.length) > UNITS_CHANGED_MAX) continue;
    compared++;
    const changes = changesBetween(wanted, Array.from(name.toLowerCase()), most);
    if (changes === undefined) continue;
    nearest = name;
    most = changes - 1;
  }
  return nearest;
}

/** A change adds or removes at most one character of two UTF-16 units. */
const UNITS_CHANGED_MAX = 2 * FUZZY_CHANGES_MAX;

/** Number of changes between the words, if it is at most `most` and less than the letters of the name. */
function changesBetween(wanted: readonly string[], letters: readonly string[], most: number): number | undefined {
  const isShort = Math.max(wanted.length, letters.length) < LONG_WORD_LETTERS;
  const bound = Math.min(isShort ? 1 : most, most, letters.length - 1);
  for (let changes = 0; changes <= bound; changes++) if (isWithin(wanted, letters, changes)) return changes;
  return undefined;
}

/**
 * Ends an error message about an unknown name: asks whether the nearest name, with `before` in front of it, was meant.
 * Only a full stop if no name is near.
 */
export function suggestion(word: string, names: Iterable<string>, before = ""): string {
  const nearest = nearestName(word, names);
  return nearest === undefined ? "." : `; did you mean ${before}${nearest}?`;
}

/** An unknown name, and the names that may have been meant: only those that the caller may see. */
export interface UnknownName {
  readonly name: string;
  readonly among: Iterable<string>;
  /** Default: `not_found`. */
  readonly code?: ErrorCode;
}

/** The error about an unknown name: see `withNearest`. */
export function unknownName(text: string, { name, among, code = "not_found" }: UnknownName): AppError {
  return withNearest(new AppError(code, text, { details: { unknown: name } }), among);
}

/**
 * The error with a question about the nearest name behind its text, and with `nearest` in its details. The error itself
 * if its details have no `unknown` name, or if no name is near.
 */
export function withNearest(error: AppError, among: Iterable<string>): AppError {
  const { unknown, nearest: known } = error.details ?? {};
  const nearest = typeof unknown === "string" && known === undefined ? nearestName(unknown, among) : undefined;
  if (nearest === undefined || nearest === unknown) return error;
  const text = error.message.replace(/\.$/, "");
  const question = `${text}${/[!?]$/.test(text) ? "" : ";"} did you mean ${nearest}?`;
  return new AppError(error.code, question, { details: { ...error.details, nearest }, cause: error.cause });
}
