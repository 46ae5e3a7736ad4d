/**
 * Words (tokens) of a text for full-text search: runs of letters, digits and `_`, in lower case and Unicode
 * compatibility form (NFKC). In scripts without spaces (Han, Kana, Hangul), each pair of neighbouring characters is a
 * token, and so is a lone character.
 */

/** Longer words are cut, both in texts and in conditions. */
export const TOKEN_MAX_CHARACTERS = 64;

const PLAIN = /^[\0-\x7f]*$/;
const PLAIN_WORD = /[a-z0-9_]+/g;
const RUN = /[\p{L}\p{N}\p{M}_]+/gu;
const UNSPACED = /([\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]+)/u;

/** The tokens in the order of the text, with repetitions. */
export function tokens(text: string): string[] {
  const found: string[] = [];
  if (PLAIN.test(text)) {
    for (const word of text.toLowerCase().match(PLAIN_WORD) ?? []) found.push(cut(word));
    return found;
  }
  for (const run of runs(text)) addRun(found, run);
  return found;
}

/** The runs of a text, in the form in which tokens are compared. */
export function runs(text: string): readonly string[] {
  return comparable(text).match(RUN) ?? [];
}

/** Lower case and compatibility form (NFKC). */
export function comparable(text: string): string {
  return PLAIN.test(text) ? text.toLowerCase() : text.normalize("NFKC").toLowerCase();
}

/** Different words of one letter, digit or `_` in a plain text. */
const LONE_PLAIN_WORDS = 37;

/** An upper bound of the number of different tokens of a text. */
export function mostDifferentTokens(text: string): number {
  // In a plain text, longer words take three characters and more, together with their separator.
  return PLAIN.test(text) ? LONE_PLAIN_WORDS + Math.ceil(text.length / 3) : comparable(text).length;
}

/** Splits a run by script. `unspaced`: the script is written without spaces. */
export function parts(run: string): readonly { readonly text: string; readonly unspaced: boolean }[] {
  if (PLAIN.test(run)) return [{ text: run, unspaced: false }];
  // Splitting by a captured pattern puts the unspaced parts at odd places.
  return run.split(UNSPACED).flatMap((text, at) => (text === "" ? [] : [{ text, unspaced: at % 2 === 1 }]));
}

/** Adds the tokens of `text` to `into` until `into` has `max` of them. Returns false if some were left out. */
export function collectTokens(text: string, into: Set<string>, max: number): boolean {
  for (const token of tokens(text)) {
    if (into.has(token)) continue;
    if (into.size >= max) return false;
    into.add(token);
  }
  return true;
}

/**
 * Tokens that every text with this word contains. `undefined` if there are none that are certain: for a word with `*`
 * (`web*`), and for a lone character of a script that is indexed by pairs.
 */
export function searchTokens(word: string): readonly string[] | undefined {
  if (word.includes("*")) return undefined;
  const found = tokens(word);
  if (found.length === 0 || found.some((token) => LONE_CHARACTER.test(token))) return undefined;
  return found;
}

const LONE_CHARACTER = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]$/u;

function addRun(found: string[], run: string): void {
  for (const { text, unspaced } of parts(run)) {
    if (unspaced) addPairs(found, text);
    else found.push(cut(text));
  }
}

function addPairs(found: string[], run: string): void {
  const characters = Array.from(run);
  if (characters.length === 1) found.push(run);
  for (let at = 1; at < characters.length; at++) found.push(`${characters[at - 1] ?? ""}${characters[at] ?? ""}`);
}

function cut(word: string): string {
  return word.length <= TOKEN_MAX_CHARACTERS ? word : word.slice(0, TOKEN_MAX_CHARACTERS);
}
