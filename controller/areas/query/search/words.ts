import type { Word } from "../../../../common/search/index.ts";
import { type WantedText, wantedPhrase, wantedWord } from "../../../../common/text/words.ts";
import type { Value } from "../../../../common/value.ts";
import { hasWords, type ClassView, type ObjectRow } from "../../objects/index.ts";
import { about } from "../expressions/placing.ts";
import { cellsOf, type Scope } from "../plan/names/scope.ts";

/** The words of a text to search. `AppError("invalid")` for a text without letters and digits. */
export function wantedText({ text, quoted, span }: Word): WantedText {
  return about(span, () => (quoted ? wantedPhrase(text) : wantedWord(text)));
}

/** True if an object has all the words, each in a column that the principal sees. */
export function wordsFilter(words: readonly WantedText[], scope: Scope): (row: ObjectRow) => boolean {
  const columns = new Map<ClassView, readonly string[]>();
  const cells = cellsOf(scope);
  return (row) => {
    let names = columns.get(row.class);
    if (!names) columns.set(row.class, (names = wordColumns(row.class, scope)));
    const hidden = cells?.hiddenIn(row);
    const seen = hidden ? names.filter((name) => !hidden.has(name)) : names;
    return words.every((word) => seen.some((name) => isText(row.values[name]) && word.isIn(row.values[name])));
  };
}

function wordColumns(view: ClassView, scope: Scope): readonly string[] {
  return scope
    .columnsOf(view)
    .filter((column) => hasWords(column.type))
    .map((column) => column.name);
}

function isText(value: Value | undefined): value is string {
  return typeof value === "string";
}
