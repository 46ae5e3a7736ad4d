import { MANUAL_HITS_MAX, MANUAL_QUERY_MAX_CHARACTERS, MANUAL_QUERY_MAX_WORDS } from "../limits/manual.ts";
import { beginningOf } from "../text/cut.ts";

/**
 * Search in the manual, by the controller and by the script of its pages: both find the same sections in the same order.
 */

/** A part of a page under one heading. */
export interface Section {
  /** Path with the anchor of the heading. */
  readonly url: string;
  /** Title of the page. */
  readonly page: string;
  /** Text of the heading; the same as `page` for the beginning of a page. */
  readonly heading: string;
  /** Beginning of the text. */
  readonly excerpt: string;
}

/** A word and its sections, as pairs of numbers: position in `sections`, weight of the word there. */
export type WordEntry = readonly [word: string, postings: readonly number[]];

export interface ManualIndex {
  readonly sections: readonly Section[];
  /** Sorted by the word, by UTF-16 units. */
  readonly words: readonly WordEntry[];
}

/** A word that equals one of the search counts as much as this many words that begin with it. */
const WHOLE_WORD_FACTOR = 3;

/** Words that nearly every section has. They are not indexed, and ignored in a search. */
const COMMON_WORDS = new Set(
  "a an and are as at be by can do does for from has have how i if in is it its my not of on or that the this to what when which with you your".split(
    " ",
  ),
);

/** Words of a text in lower case, in their order. A name such as `body_memory_mib` is a word, and so are its parts. */
export function wordsOf(text: string): readonly string[] {
  const names = text.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) ?? [];
  return names
    .flatMap((name) => (name.includes("_") ? [name, ...name.split("_")] : [name]))
    .filter((word) => word.length > 1 && !COMMON_WORDS.has(word));
}

/**
 * Sections that have every word of the query, or words that begin with it; the best first, at most `MANUAL_HITS_MAX`.
 * Empty for a query without words.
 */
export function searchManual({ sections, words }: ManualIndex, query: string): readonly Section[] {
  const sought = [...new Set(namesIn(beginningOf(query, MANUAL_QUERY_MAX_CHARACTERS)))].slice(
    0,
    MANUAL_QUERY_MAX_WORDS,
  );
  const [first, ...others] = sought.map((word) => weightsOf(words, word));
  if (first === undefined) return [];
  const found = [...first].flatMap(([section, weight]) => {
    const rest = others.map((weights) => weights.get(section));
    return rest.includes(undefined) ? [] : [{ section, weight: rest.reduce<number>(sum, weight) }];
  });
  const best = found.sort((one, other) => other.weight - one.weight || one.section - other.section);
  return best.slice(0, MANUAL_HITS_MAX).flatMap(({ section }) => sections[section] ?? []);
}

/** Words of a query. A name with underscores is one word: its parts alone would find more than was asked for. */
function namesIn(query: string): readonly string[] {
  const names = query.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) ?? [];
  return names.filter((word) => !COMMON_WORDS.has(word));
}

function sum(one: number, other: number | undefined): number {
  return one + (other ?? 0);
}

/** The greatest weight of each section, by words that begin with `prefix`. */
function weightsOf(words: readonly WordEntry[], prefix: string): ReadonlyMap<number, number> {
  const weights = new Map<number, number>();
  for (let at = firstFrom(words, prefix); words[at]?.[0].startsWith(prefix) === true; at++) {
    const [word, postings] = words[at] ?? ["", []];
    const factor = word === prefix ? WHOLE_WORD_FACTOR : 1;
    for (let pair = 0; pair < postings.length; pair += 2) {
      const [section = 0, weight = 0] = postings.slice(pair, pair + 2);
      weights.set(section, Math.max(weights.get(section) ?? 0, weight * factor));
    }
  }
  return weights;
}

/** Position of the first word that is not before `prefix`. */
function firstFrom(words: readonly WordEntry[], prefix: string): number {
  let [low, high] = [0, words.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((words[middle]?.[0] ?? "") < prefix) low = middle + 1;
    else high = middle;
  }
  return low;
}
