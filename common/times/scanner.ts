import { millisecondsOf } from "./fields.ts";

const ZERO = 48;
const NINE = 57;
const BLANK = 32;
const TAB = 9;
const LETTERS = /[\p{L}\p{M}]+/uy;

/** A text and the position up to which it was read. */
export class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  /** Reads up to `most` digits as a number; -1 if there are fewer than `least`. */
  number(least: number, most: number): number {
    let [value, end] = [0, this.#at];
    for (; end < this.#at + most; end += 1) {
      const code = this.#text.charCodeAt(end);
      if (!(code >= ZERO && code <= NINE)) break;
      value = value * 10 + code - ZERO;
    }
    if (end - this.#at < least) return -1;
    this.#at = end;
    return value;
  }

  /** Reads up to `most` digits of a fraction as milliseconds; -1 if there are fewer than `least`. */
  fraction(least: number, most: number): number {
    const from = this.#at;
    if (this.number(least, most) < 0) return -1;
    return millisecondsOf(this.#text.slice(from, this.#at));
  }

  /** Skips blanks and tabs; false if there are none. */
  blanks(): boolean {
    const from = this.#at;
    for (let code = this.#text.charCodeAt(from); code === BLANK || code === TAB; code = this.#text.charCodeAt(this.#at))
      this.#at += 1;
    return this.#at > from;
  }

  /** Skips `text`; false if it is not here. */
  takes(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  /** Reads letters of any language; empty if there are none. */
  letters(): string {
    return this.take(LETTERS);
  }

  /** Reads the text that a sticky expression matches here; empty without a match. */
  take(expression: RegExp): string {
    expression.lastIndex = this.#at;
    const [found = ""] = expression.exec(this.#text) ?? [];
    this.#at += found.length;
    return found;
  }
}
