import { AppError } from "../../../../common/errors.ts";
import type { Word } from "../../../../common/search/index.ts";
import { comparable, parts, runs, searchTokens, tokens } from "../../../../common/text/tokens.ts";
import type { Value } from "../../../../common/value.ts";
import { hasWords, type ClassView, type ObjectRow } from "../../objects/index.ts";
import { wildcard } from "../questions.ts";
import type { Scope } from "../scope.ts";

/** A word that is looked for in the full text of objects. */
export interface WantedWord {
  /** Whether a text has it. */
  readonly isIn: (text: string) => boolean;
  /** Words that every text with it has, for the index. */
  readonly indexed: readonly string[];
}

const PIECE = /[\p{L}\p{N}\p{M}_*]+/gu;

/**
 * A word, or several that follow each other (`web-1`, `'disk full'`), is found where its tokens are; one with `*`, or a lone character of a
 * script without spaces, where each of its pieces fits a word of the text. `AppError("invalid")` for a text without letters and digits.
 */
export function wantedWord({ text, quoted }: Word): WantedWord {
  const plain = quoted ? text.replaceAll("*", " ") : text;
  const wanted = tokens(plain);
  if (wanted.length === 0 && !plain.includes("*")) throw new AppError("invalid", `[Valid] ${JSON.stringify(text)} has no letters or digits to search for.`);
  return searchTokens(plain) ? { isIn: phraseTest(wanted), indexed: [plain] } : patternTest(plain);
}

/** Whether an object has all the words, each in one of the columns that its reader sees. */
export function wordsFilter(words: readonly WantedWord[], scope: Scope): (row: ObjectRow) => boolean {
  const columns = new Map<ClassView, readonly string[]>();
  return (row) => {
    let names = columns.get(row.class);
    if (!names) columns.set(row.class, (names = wordColumns(row.class, scope)));
    return words.every((word) => names.some((name) => isText(row.values[name]) && word.isIn(row.values[name])));
  };
}

function wordColumns(view: ClassView, scope: Scope): readonly string[] {
  return scope.columnsOf(view).filter((column) => hasWords(column.type)).map((column) => column.name);
}

function isText(value: Value | undefined): value is string {
  return typeof value === "string";
}

function phraseTest(wanted: readonly string[]): (text: string) => boolean {
  const [first = ""] = wanted;
  return (text) => {
    // A token stands in the text as it is: most texts need not be cut into tokens to be refused.
    if (!comparable(text).includes(first)) return false;
    const found = tokens(text);
    for (let at = found.indexOf(first); at !== -1; at = found.indexOf(first, at + 1)) {
      if (wanted.every((token, index) => found[at + index] === token)) return true;
    }
    return false;
  };
}

function patternTest(text: string): WantedWord {
  const pieces = comparable(text).match(PIECE) ?? [];
  const tests = pieces.map(pieceTest);
  const indexed = pieces.filter((piece) => searchTokens(piece) !== undefined && parts(piece).length === 1);
  return { isIn: (value) => tests.every((test) => test(value)), indexed };
}

/** Scripts without spaces have no ends of words, so that a piece in one is looked for anywhere. */
function pieceTest(piece: string): (text: string) => boolean {
  const isUnspaced = piece.split("*").some((part) => part !== "" && parts(part).some(({ unspaced }) => unspaced));
  const fits = wildcard(isUnspaced ? `*${piece}*` : piece);
  return (text) => runs(text).some((run) => (isUnspaced ? fits(run) : parts(run).some((part) => fits(part.text))));
}
