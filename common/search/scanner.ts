import type { Span } from "../mql/index.ts";
import { path, quoted, wordEnd } from "../mql/lex.ts";
import { syntaxError } from "../mql/position.ts";
import { AppError } from "../errors.ts";
import { MQL_NESTING_MAX } from "../limits.ts";
import type { SearchClass, SearchField, Word } from "./ast.ts";

const BLANKS = /\s*/uy;
const SEPARATORS = "|;；";
const BARE = /[^\s|;；]+/uy;
const FOUND_MAX_CHARACTERS = 40;

/** Position of the parser in the text. Reads by character, because the language has few signs and much free text. */
export class Scanner {
  readonly text: string;
  at = 0;

  constructor(text: string) {
    this.text = text;
    this.skipBlanks();
  }

  get isAtEnd(): boolean {
    return this.at >= this.text.length;
  }

  /** True at the end of an alternative: at a separator or at the end of the text. */
  get isAtSeparator(): boolean {
    return this.isAtEnd || SEPARATORS.includes(this.text.charAt(this.at));
  }

  get isAtQuote(): boolean {
    return /["']/.test(this.text.charAt(this.at));
  }

  skipBlanks(): void {
    this.match(BLANKS);
  }

  /** Matches a sticky pattern here and moves past it, but not past the blanks after it. */
  match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found ?? undefined;
  }

  looksAt(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    return pattern.test(this.text);
  }

  accept(...signs: readonly string[]): boolean {
    const sign = signs.find((candidate) => this.text.startsWith(candidate, this.at));
    if (sign === undefined) return false;
    this.at += sign.length;
    this.skipBlanks();
    return true;
  }

  /** Accepts a whole word, ignoring case. */
  acceptWord(word: string): boolean {
    const end = this.at + word.length;
    if (this.text.slice(this.at, end).toLowerCase() !== word || wordEnd(this.text, end) !== end) return false;
    this.at = end;
    this.skipBlanks();
    return true;
  }

  classPath(): SearchClass | undefined {
    if (this.text.charAt(this.at) !== "/") return undefined;
    const { text, start, end } = path(this.text, this.at);
    this.at = end;
    const subtree = text.endsWith("/");
    return { path: subtree && text.length > 1 ? text.slice(0, -1) : text, subtree, span: { start, end } };
  }

  field(): SearchField {
    const start = this.at;
    const parts = [this.name()];
    while (this.accept(".")) {
      if (parts.length > MQL_NESTING_MAX)
        throw new AppError("too_large", `[Parser] A field has at most ${MQL_NESTING_MAX} members inside each other.`, {
          details: { limit: "MQL_NESTING_MAX" },
        });
      parts.push(this.name());
    }
    return { parts, span: this.spanFrom(start) };
  }

  name(expected = "a field"): string {
    const start = this.at;
    const end = wordEnd(this.text, start);
    if (end === start) throw this.fail(expected);
    this.at = end;
    const name = this.text.slice(start, end);
    this.skipBlanks();
    return name;
  }

  /** Reads a quoted text, or everything up to a blank or a separator. */
  word(): Word {
    const start = this.at;
    if (this.isAtQuote) return this.quoted();
    const [text] = this.match(BARE) ?? [];
    if (text === undefined) throw this.fail("a word");
    this.skipBlanks();
    return { text, quoted: false, span: { start, end: start + text.length } };
  }

  quoted(): Word {
    const { text, start, end } = quoted(this.text, this.at, this.text.charCodeAt(this.at));
    this.at = end;
    this.skipBlanks();
    return { text, quoted: true, span: { start, end } };
  }

  /** The span from `start` to here, without trailing blanks. */
  spanFrom(start: number): Span {
    return { start, end: start + this.text.slice(start, this.at).trimEnd().length };
  }

  fail(expected: string): AppError {
    const [found = ""] =
      /^[\p{L}\p{N}\p{M}_]+|^./u.exec(this.text.slice(this.at, this.at + FOUND_MAX_CHARACTERS)) ?? [];
    return syntaxError(this.text, this.at, expected, this.isAtEnd ? "the end" : JSON.stringify(found));
  }
}
