import { AppError } from "../errors.ts";
import { FUZZY_WORDS_MAX, TEXT_REMEMBERED_MAX_CHARACTERS, TEXT_WORDS_MAX } from "../limits.ts";
import { FUZZY_CHANGES_MAX, isWithin } from "./distance.ts";
import { comparable, parts, runs, searchTokens, TOKEN_MAX_CHARACTERS, tokens } from "./tokens.ts";
import { wildcard } from "./wildcard.ts";

/** Something that is looked for in the words of texts. */
export interface WantedText {
  /** True when a text has it. */
  readonly isIn: (text: string) => boolean;
  /** Words that every text with it has, for the index. */
  readonly indexed: readonly string[];
  /** Patterns each of which fits a token of every such text, with `*` for any letters. */
  readonly patterns: readonly string[];
}

/** Successive conditions often read the same text: it is cut into words once. */
const tokensOfText = remembered(tokens);
const runsOfText = remembered(runs);
const comparableText = remembered(comparable);
const differentWords = remembered((text) => [...new Set(tokens(text))].map((word) => Array.from(word)));

const PIECE = /[\p{L}\p{N}\p{M}_*]+/gu;

/**
 * A word, or several that follow each other (`web-1`), is found where its tokens are; one with `*`, or a lone character
 * of a script without spaces, where each of its pieces fits a word of the text. `AppError("invalid")` for a text
 * without letters and digits, `too_large` for one with more than `TEXT_WORDS_MAX` words.
 */
export function wantedWord(text: string): WantedText {
  const wanted = tokensOf(text, text.includes("*"));
  return searchTokens(text) ? { isIn: phraseTest(wanted), indexed: [text], patterns: [] } : patternTest(text);
}

/** All words of the text, wherever they stand. */
export function wantedWords(text: string): WantedText {
  const words = bounded(text.split(/\s+/u).filter((word) => word !== "")).map(wantedWord);
  if (words.length === 0) throw nothingWanted(text);
  return {
    isIn: (value) => words.every((word) => word.isIn(value)),
    indexed: words.flatMap((word) => word.indexed),
    patterns: words.flatMap((word) => word.patterns),
  };
}

/** The words of the text in their order, one behind the other. A `*` means nothing here. */
export function wantedPhrase(text: string): WantedText {
  return wantedWord(text.replaceAll("*", " "));
}

/** The words of the text one behind the other, the last of which may go on. */
export function wantedPrefix(text: string): WantedText {
  const wanted = tokensOf(text);
  const before = wanted.slice(0, -1);
  const last = wanted.at(-1) ?? "";
  const isIn = (value: string): boolean => {
    const found = tokensOfText(value);
    return found.some(
      (token, at) =>
        token.startsWith(last) && before.every((word, index) => found[at - before.length + index] === word),
    );
  };
  return { isIn, indexed: before, patterns: [`${last}*`] };
}

/** For every word of the text one that is the same up to `FUZZY_CHANGES_MAX` changes, fewer than it has characters. */
export function wantedNearly(text: string): WantedText {
  const wanted = bounded(tokensOf(text), { most: FUZZY_WORDS_MAX, limit: "FUZZY_WORDS_MAX" }).map((word) =>
    Array.from(word),
  );
  const isIn = (value: string): boolean => {
    const found = differentWords(value);
    return wanted.every((word) =>
      found.some((other) => isWithin(word, other, Math.min(FUZZY_CHANGES_MAX, word.length - 1))),
    );
  };
  return { isIn, indexed: [], patterns: [] };
}

function tokensOf(text: string, mayBeNone = false): readonly string[] {
  const found = tokens(text);
  if (found.length === 0 && !mayBeNone) throw nothingWanted(text);
  return bounded(found);
}

const WORDS = { most: TEXT_WORDS_MAX, limit: "TEXT_WORDS_MAX" };

function bounded(words: readonly string[], { most, limit } = WORDS): readonly string[] {
  if (words.length <= most) return words;
  throw new AppError("too_large", `[Valid] One condition looks for at most ${most} words.`, { details: { limit } });
}

function nothingWanted(text: string): AppError {
  return new AppError("invalid", `[Valid] ${JSON.stringify(text)} has no letters or digits to search for.`);
}

function phraseTest(wanted: readonly string[]): (text: string) => boolean {
  const [first = ""] = wanted;
  return (text) => {
    // A token stands in the text as it is: most texts need not be cut into tokens to be refused.
    if (!comparableText(text).includes(first)) return false;
    const found = tokensOfText(text);
    for (let at = found.indexOf(first); at !== -1; at = found.indexOf(first, at + 1)) {
      if (wanted.every((token, index) => found[at + index] === token)) return true;
    }
    return false;
  };
}

function patternTest(text: string): WantedText {
  const pieces = bounded(comparable(text).match(PIECE) ?? []);
  const tests = pieces.map(pieceTest);
  const indexed = pieces.filter((piece) => searchTokens(piece) !== undefined && parts(piece).length === 1);
  const patterns = pieces.filter((piece) => piece.includes("*") && !isUnspaced(piece) && isPattern(piece));
  return { isIn: (value) => tests.every((test) => test(value)), indexed, patterns };
}

/**
 * Patterns each of which fits a token of every text that the wildcard matches as a whole. A sign may melt into the last
 * letter before a `*`, so that it is left out.
 */
export function tokenPatterns(text: string): readonly string[] {
  if (!/^[\0-\x7f]*$/.test(text)) return [];
  const pieces = text.toLowerCase().match(/[a-z0-9_*]+/g) ?? [];
  return pieces
    .flatMap((piece) => {
      const letters = piece.split("*");
      const kept = letters.map((part, at) => (at < letters.length - 1 ? part.slice(0, -1) : part));
      return kept.flatMap((part, at) => {
        if (part === "") return [];
        const [before, after] = [at > 0, at < letters.length - 1];
        return [`${before ? "*" : ""}${part}${after ? "*" : ""}`];
      });
    })
    .filter(isPattern);
}

/** False for long pieces, too: the index has only the beginning of a longer word. */
function isPattern(piece: string): boolean {
  return /[^*]/.test(piece) && piece.length < TOKEN_MAX_CHARACTERS;
}

/** Scripts without spaces have no ends of words, so that a piece in one is looked for anywhere. */
function pieceTest(piece: string): (text: string) => boolean {
  const unspaced = isUnspaced(piece);
  const fits = wildcard(unspaced ? `*${piece}*` : piece);
  const letters = piece.split("*").filter((part) => part !== "");
  return (text) => {
    const whole = comparableText(text);
    if (!letters.every((part) => whole.includes(part))) return false;
    return runsOfText(text).some((run) => (unspaced ? fits(run) : parts(run).some((part) => fits(part.text))));
  };
}

function isUnspaced(piece: string): boolean {
  return piece.split("*").some((part) => part !== "" && parts(part).some(({ unspaced }) => unspaced));
}

function remembered<T>(make: (text: string) => T): (text: string) => T {
  let latest: { readonly text: string; readonly made: T } | undefined;
  return (text) => {
    if (text.length > TEXT_REMEMBERED_MAX_CHARACTERS) return make(text);
    if (latest?.text !== text) latest = { text, made: make(text) };
    return latest.made;
  };
}
