import { AppError } from "../../../../common/errors.ts";
import {
  INDEXED_VALUES_PER_OBJECT_MAX,
  TAG_DEPTH_MAX,
  TERM_MAX_BYTES,
  TERMS_PER_OBJECT_MAX,
  WORDS_PER_OBJECT_MAX,
} from "../../../../common/limits.ts";
import { collectTokens, mostDifferentTokens } from "../../../../common/text/tokens.ts";
import type { Row, Value } from "../../../../common/value.ts";
import { TAGS } from "../definitions/definition.ts";
import type { LoadedClass, LoadedColumn } from "../definitions/views.ts";
import { canonicalText, isObject } from "./values.ts";

/** Term of an object whose words are not all in the index. */
export const MORE_WORDS_TERM = "x";

/** Terms of the canonical value of an indexed column: one for the value, or one for each element or map key. */
export function valueTerms(column: LoadedColumn, value: Value | undefined): string[] {
  if (value === undefined || !column.indexed) return [];
  if (Array.isArray(value)) return value.map((element: Value) => valueTerm(column.number, canonicalText(element)));
  if (isObject(value)) return Object.keys(value).map((key) => valueTerm(column.number, key));
  return [valueTerm(column.number, canonicalText(value))];
}

/**
 * The branches of each tag: `a1=os/` and `a1=os/linux/` for `os/linux/web`. A search below a tag uses the tag with a
 * slash. Several tags of an object share branches.
 */
export function branchTerms({ tags }: Row): string[] {
  if (!Array.isArray(tags)) return [];
  const branches = new Set<string>();
  for (const tag of tags) for (const branch of branchesOf(canonicalText(tag as Value))) branches.add(branch);
  return Array.from(branches, (branch) => valueTerm(TAGS.number, branch));
}

export function branchesOf(tag: string): string[] {
  const branches: string[] = [];
  for (let at = tag.indexOf("/"); at >= 0 && branches.length < TAG_DEPTH_MAX; at = tag.indexOf("/", at + 1))
    branches.push(tag.slice(0, at + 1));
  return branches;
}

/** Terms that several values of an object can need. */
export function sharedTerms(view: LoadedClass, row: Row): string[] {
  return [...wordTerms(view, row), ...branchTerms(row)];
}

export function valueTerm(columnNumber: number, text: string): string {
  return cut(`a${columnNumber}=${text}`);
}

export function wordTerm(token: string): string {
  return `w${token}`;
}

/** Terms of all words of the full text, and one term if there are more words than are kept. */
export function wordTerms(view: LoadedClass, row: Row): string[] {
  if (view.wordColumns.length === 0) return [];
  const words = new Set<string>();
  let complete = true;
  for (const column of view.wordColumns) {
    const value = row[column.name];
    if (typeof value === "string") complete = collectTokens(value, words, WORDS_PER_OBJECT_MAX) && complete;
  }
  const terms = Array.from(words, wordTerm);
  return complete ? terms : [...terms, MORE_WORDS_TERM];
}

/** False only if `wordTerms` has all words of the object. Far cheaper than `wordTerms`, because it reads no words. */
export function mayHaveMoreWords(view: LoadedClass, row: Row): boolean {
  let most = 0;
  for (const { name } of view.wordColumns) {
    const value = row[name];
    if (typeof value === "string") most += mostDifferentTokens(value);
  }
  return most > WORDS_PER_OBJECT_MAX;
}

/** All terms of an object except those of its class. `AppError("too_large")` when indexed collections are too long. */
export function contentTerms(view: LoadedClass, row: Row): string[] {
  const terms = indexTerms(view, row);
  checkIndexedValues(view, terms.length);
  return view.wordColumns.length === 0 ? terms : terms.concat(wordTerms(view, row));
}

/**
 * Terms that a removal drops, so that no index entry points to a missing object. Entries beyond the limit may stay,
 * because reads recheck them.
 */
export function droppedTerms(view: LoadedClass, row: Row): string[] {
  return indexTerms(view, row).concat(wordTerms(view, row)).slice(0, TERMS_PER_OBJECT_MAX);
}

function indexTerms(view: LoadedClass, row: Row): string[] {
  const terms: string[] = [];
  for (const column of view.columns) {
    if (column.indexed && row[column.name] !== undefined) terms.push(...valueTerms(column, row[column.name]));
  }
  return row["tags"] === undefined ? terms : terms.concat(branchTerms(row));
}

/** Number of values that an object has in indexed columns, and of branches of its tags. */
export function countIndexedValues(view: LoadedClass, row: Row): number {
  let count = branchTerms(row).length;
  for (const column of view.columns) {
    if (!column.indexed) continue;
    const value = row[column.name];
    if (Array.isArray(value)) count += value.length;
    else if (isObject(value)) count += Object.keys(value).length;
    else if (value !== undefined) count++;
  }
  return count;
}

export function checkIndexedValues(view: LoadedClass, count: number): void {
  if (count <= INDEXED_VALUES_PER_OBJECT_MAX) return;
  throw new AppError(
    "too_large",
    `[Valid] An object of ${view.path} has at most ${INDEXED_VALUES_PER_OBJECT_MAX} indexed values, elements counted.`,
    {
      details: { limit: "INDEXED_VALUES_PER_OBJECT_MAX" },
    },
  );
}

/** The number of a column's value in its slot. */
export function slotNumber(value: Value | undefined): number | undefined {
  if (typeof value !== "number" && typeof value !== "string") return undefined;
  // Integers beyond 2^53 are texts. Rounding keeps their order, and a range needs no more.
  return Math.min(Math.max(Number(value), -Number.MAX_VALUE), Number.MAX_VALUE);
}

/** True if other values can have the same term. */
export function mayBeCut(term: string): boolean {
  // A cut term lacks at most the bytes of one character.
  return term.length * 3 > TERM_MAX_BYTES - 4 && Buffer.byteLength(term) > TERM_MAX_BYTES - 4;
}

/** The text cut to at most `TERM_MAX_BYTES` in UTF-8, without splitting a character. */
function cut(term: string): string {
  if (term.length * 3 <= TERM_MAX_BYTES) return term;
  const bytes = Buffer.from(term);
  if (bytes.length <= TERM_MAX_BYTES) return term;
  let end = TERM_MAX_BYTES;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}
