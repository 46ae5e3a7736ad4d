import { AppError } from "../errors.ts";
import { FUZZY_WORDS_MAX, TEXT_REMEMBERED_MAX_CHARACTERS, TEXT_WORDS_MAX } from "../limits.ts";
import { FUZZY_CHANGES_MAX, isWithin } from "./distance.ts";
import { comparable, parts, runs, searchTokens, TOKEN_MAX_CHARACTERS, tokens } from "./tokens.ts";
import { wildcard } from "./wildcard.ts";

/** A full-text condition. */
export interface WantedText {
  /** True if the text fulfils the condition. */
  readonly isIn: (text: string) => boolean;
  /** Words to look up in the index: every matching text contains them. */
  readonly indexed: readonly string[];
  /** Patterns with `*` for any letters. Each of them matches a token of every matching text. */
  readonly patterns: readonly string[];
}

/** Successive conditions often read the same text, so the result for the latest text is kept. */
const tokensOfText = remembered(tokens);
const runsOfText = remembered(runs);
const comparableText = remembered(comparable);
const differentWords = remembered((text) => [...new Set(tokens(text))].map((word) => Array.from(word)));

const PIECE = /[\p{L}\p{N}\p{M}_*]+/gu;

/**
 * Finds a word, or several words in sequence such as `web-1`: the text must contain their tokens in sequence. For a
 * word with a `*`, or a lone character of a script without spaces, each of its pieces must match a word of the text.
 * `AppError("invalid")` for a text without letters, digits and `*`; `too_large` for more than `TEXT_WORDS_MAX` words.
 */
export function wantedWord(text: string): WantedText {
  const wanted = tokensOf(text, text.includes("*"));
  return searchTokens(text) ? { isIn: phraseTest(wanted), indexed: [text], patterns: [] } : patternTest(text);
}

/** All words of the text must occur, at any position. */
export function wantedWords(text: string): WantedText {
  const words = bounded(text.split(/\s+/u).filter((word) => word !== "")).map(wantedWord);
  if (words.length === 0) throw nothingWanted(text);
  return {
    isIn: (value) => words.every((word) => word.isIn(value)),
    indexed: words.flatMap((word) => word.indexed),
    patterns: words.flatMap((word) => word.patterns),
  };
}

/** The words of the text must occur in sequence. A `*` has no meaning. */
export function wantedPhrase(text: string): WantedText {
  return wantedWord(text.replaceAll("*", " "));
}

/** The words of the text must occur in sequence; the last one may be the beginning of a longer word. */
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

/**
 * For each word of the text a similar word must occur: at most `FUZZY_CHANGES_MAX` changes, and fewer than the word has
 * characters. `AppError("too_large")` for more than `FUZZY_WORDS_MAX` words.
 */
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
    // A token occurs unchanged in the comparable text, so most texts need not be split into tokens to be refused.
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
 * Patterns for the index: each matches a token of every text that the wildcard matches as a whole. They omit the last
 * letter before a `*`, because a combining mark after it may change it. Empty for a wildcard with non-ASCII characters.
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

/** False for a piece of `*` only, and for long pieces: the index has only the beginning of a longer word. */
function isPattern(piece: string): boolean {
  return /[^*]/.test(piece) && piece.length < TOKEN_MAX_CHARACTERS;
}

/** Scripts without spaces have no word boundaries, so a piece in such a script may match anywhere. */
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
