import { AppError } from "../errors.ts";
import { MQL_TEXT_MAX_CHARACTERS } from "../limits.ts";
import { positionAt, type Position } from "./position.ts";

/** One statement of a script, without its separator, and the position at which its text begins. */
export interface StatementText {
  readonly text: string;
  readonly start: Position;
}

/** The current enclosure, named by the sign that closes it. */
type Enclosure = "'" | '"' | "`" | "\n" | "*/";

/** Marks between two turns of the reader where no statement ends: less than half a millisecond. */
const MARKS_PER_TURN = 256;
/** Number of characters after a position that decide which token begins there. */
const LOOKAHEAD_CHARACTERS = 80;
/** A word next to letters or in a path is no bracket. `case` opens only before `when`, or before a word and `when`. */
const MARKS =
  /['"`;；#]|--|\/\/|\/\*|(?<![\p{L}\p{N}\p{M}_/.])(?:begin(?![\p{L}\p{N}\p{M}_])|case(?=\s{1,8}(?:[^\s;'"`]{1,56}\s{1,8})?when(?![\p{L}\p{N}\p{M}_]))|end(?![\p{L}\p{N}\p{M}_]))/giu;
/** Signs that make the word before them a name, outside of CASE. */
const AFTER_NAME = /\s*[=<>!,).]/y;
const BLANK = /\s+|(?:--|\/\/|#)[^\n]*|\/\*[^]*?\*\/|batch(?=\s)/giy;
/** In a text between `"`, a backslash escapes the next character. */
const CLOSINGS: Readonly<Record<Enclosure, RegExp>> = {
  "'": /'/g,
  '"': /["\\]/g,
  "`": /`/g,
  "\n": /\n/g,
  "*/": /\*\//g,
};
const ENCLOSURES: Readonly<Record<string, Enclosure>> = {
  "'": "'",
  '"': '"',
  "`": "`",
  "#": "\n",
  "--": "\n",
  "//": "\n",
  "/*": "*/",
};

/**
 * Splits a script that arrives in pieces into its statements, as the parser would: separators inside texts, comments
 * and `BEGIN … END` do not split. Empty statements are omitted. Holds one statement at a time, at most
 * `MQL_TEXT_MAX_CHARACTERS` of it; time is linear in the script.
 */
export class StatementSplitter {
  #held = "";
  #start: Position = { line: 1, column: 1 };
  /** End of the scanned part of `#held`. */
  #at = 0;
  /** Start of the current statement, also inside a batch. */
  #begin = 0;
  #depth = 0;
  /** Number of open CASEs in the statement. */
  #cases = 0;
  #enclosure: Enclosure | undefined;

  /**
   * Yields the statements that this piece completes, each found when the caller reads it. Read all before the next
   * call. Also yields `undefined` now and then, so that the caller can let other work run.
   */
  *take(piece: string): Generator<StatementText | undefined> {
    this.#held += piece;
    yield* this.#scan(LOOKAHEAD_CHARACTERS);
    if (this.#held.length > MQL_TEXT_MAX_CHARACTERS + piece.length) throw this.#tooLong();
  }

  /** Yields the last statement, which needs no separator. `undefined` as in `take`. */
  *end(): Generator<StatementText | undefined> {
    yield* this.#scan(0);
    yield* this.#cut(this.#held.length);
  }

  *#scan(lookahead: number): Generator<StatementText | undefined> {
    for (let marks = 1; ; marks += 1) {
      if (marks % MARKS_PER_TURN === 0) yield undefined;
      const until = this.#held.length - lookahead;
      if (this.#at >= until) return;
      if (this.#enclosure === undefined) yield* this.#plain(until);
      else this.#enclosed(this.#enclosure, until);
    }
  }

  #plain(until: number): StatementText[] {
    MARKS.lastIndex = this.#at;
    const mark = MARKS.exec(this.#held);
    if (!mark || mark.index >= until) {
      this.#at = until;
      return [];
    }
    const [sign] = mark;
    this.#at = mark.index + sign.length;
    this.#enclosure = ENCLOSURES[sign];
    if (sign === ";" || sign === "；") return this.#separator(mark.index);
    if (this.#enclosure === undefined) this.#word(sign.toLowerCase(), mark.index);
    return [];
  }

  #separator(at: number): StatementText[] {
    this.#begin = at + 1;
    this.#cases = 0;
    return this.#depth > 0 ? [] : this.#cut(at);
  }

  #word(word: string, at: number): void {
    if (word === "end") this.#endWord();
    else if (word === "case") this.#cases += 1;
    else if (firstSign(this.#held, this.#begin) === at) {
      this.#depth += 1;
      this.#begin = this.#at;
    }
  }

  #endWord(): void {
    AFTER_NAME.lastIndex = this.#at;
    if (this.#cases > 0) this.#cases -= 1;
    else if (!AFTER_NAME.test(this.#held)) this.#depth = Math.max(0, this.#depth - 1);
  }

  /** Two quotes in a row end a text and begin another one, with the same result. */
  #enclosed(enclosure: Enclosure, until: number): void {
    const mark = CLOSINGS[enclosure];
    mark.lastIndex = this.#at;
    const found = mark.exec(this.#held);
    if (!found || found.index >= until) {
      this.#at = Math.max(this.#at, until);
    } else if (found[0] === "\\") {
      this.#at = found.index + 2;
    } else {
      this.#at = found.index + found[0].length;
      this.#enclosure = undefined;
    }
  }

  #cut(end: number): StatementText[] {
    const text = this.#held.slice(0, end);
    const start = this.#start;
    // Searches only the statement, because the rest may be long and without a line break.
    const { line, column } = positionAt(text, end);
    this.#start = { line: start.line + line - 1, column: (line === 1 ? start.column + column - 1 : column) + 1 };
    this.#held = this.#held.slice(end + 1);
    this.#at = 0;
    this.#begin = 0;
    if (firstSign(text, 0) === text.length) return [];
    if (text.length > MQL_TEXT_MAX_CHARACTERS) throw this.#tooLong(start);
    return [{ text, start }];
  }

  #tooLong(start: Position = this.#start): AppError {
    const message = `[Parser] The statement that begins at line ${start.line} column ${start.column} has more than ${MQL_TEXT_MAX_CHARACTERS} characters.`;
    return new AppError("too_large", message, { details: { ...start } });
  }
}

/** Position after whitespace and comments. */
function firstSign(text: string, from: number): number {
  let at = from;
  for (;;) {
    BLANK.lastIndex = at;
    if (!BLANK.test(text)) return at;
    at = BLANK.lastIndex;
  }
}
