import { AppError } from "../errors.ts";
import { MQL_BLANKS_MAX, MQL_TEXT_MAX_CHARACTERS, MQL_TOKENS_MAX, MQL_WORD_MAX_CHARACTERS } from "../limits.ts";
import { KEYWORDS } from "./keywords.ts";
import { errorAt, syntaxError } from "./position.ts";

/** `name`: in back-ticks. `path`: begins with a slash. */
export type TokenKind = "word" | "name" | "text" | "number" | "path" | "sign" | "end";

export interface Token {
  readonly kind: TokenKind;
  readonly start: number;
  readonly end: number;
  /** Without quotes and escapes. */
  readonly text: string;
  /** A keyword in upper case; empty for any other token. */
  readonly keyword: string;
}

const LIMITS = { MQL_BLANKS_MAX, MQL_WORD_MAX_CHARACTERS };
const SPACE = 1;
const WORD = 2;
const DIGIT = 3;
const QUOTE = 4;
const SIGN = 5;
const CLASS_OF = asciiClasses();
const SLASH = 47;
const MINUS = 45;
const STAR = 42;
const DOT = 46;
const BACKSLASH = 92;
const LETTER_U = 117;
/** Number of UTF-16 units that one call converts to a text. */
const PIECE_UNITS = 8_192;
const FULL_WIDTH_SEMICOLON = 0xff1b;
const WORD_CHARACTER = /^[\p{L}\p{N}\p{M}]$/u;
/** Class plus one of each non-ASCII character seen so far: the expressions are too slow for millions of characters. */
const WIDE_CLASSES = new Uint8Array(0x110000);
const SPACE_CHARACTER = /^\s$/u;
const MIXED_CASE = /[a-z][A-Z]|[A-Z][a-z]/;
/** Meaning of a character after a backslash, by its code. Every other character stands for itself. */
const ESCAPES = asciiEscapes({ n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", "0": "\0" });

/** Splits a text into tokens on demand, without whitespace and comments. Time is linear in the text. */
export class Lexer {
  readonly #text: string;
  #at = 0;
  #tokens = 0;

  constructor(text: string) {
    if (text.length > MQL_TEXT_MAX_CHARACTERS) {
      throw new AppError("too_large", `[Parser] The text has more than ${MQL_TEXT_MAX_CHARACTERS} characters.`, {
        details: { limit: "MQL_TEXT_MAX_CHARACTERS" },
      });
    }
    this.#text = text;
  }

  /** Continues at that position of the text. */
  turnTo(at: number): void {
    this.#at = at;
  }

  /** After the last token it always returns `end`. */
  next(): Token {
    const text = this.#text;
    const at = skipBlank(text, this.#at);
    this.#at = at;
    if (at >= text.length) return make("end", text.length, text.length, "");
    const token = nextToken(text, at);
    this.#at = token.end;
    this.#tokens += 1;
    if (this.#tokens <= MQL_TOKENS_MAX) return token;
    throw new AppError("too_large", `[Parser] The text has more than ${MQL_TOKENS_MAX} words and signs.`, {
      details: { limit: "MQL_TOKENS_MAX" },
    });
  }
}

/** The whole text as tokens; the last one is `end`. */
export function tokenize(text: string): Token[] {
  const lexer = new Lexer(text);
  const tokens: Token[] = [];
  for (;;) {
    const token = lexer.next();
    tokens.push(token);
    if (token.kind === "end") return tokens;
  }
}

/** Returns true if the characters of a name allow it in a text without back-ticks. */
export function isPlainWord(name: string): boolean {
  return name !== "" && classAt(name, 0) === WORD && wordEnd(name, 0) === name.length;
}

function make(kind: TokenKind, start: number, end: number, text: string): Token {
  return { kind, start, end, text, keyword: "" };
}

function nextToken(text: string, at: number): Token {
  const code = text.charCodeAt(at);
  switch (classAt(text, at)) {
    case WORD:
      return word(text, at);
    case DIGIT:
      return number(text, at);
    case QUOTE:
      return quoted(text, at, code);
    case SIGN:
      return code === SLASH ? path(text, at) : sign(text, at, code);
    default:
      throw syntaxError(
        text,
        at,
        "a word, a value or a sign",
        `the character ${JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 0))}`,
      );
  }
}

function classAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code < 128 ? (CLASS_OF[code] ?? 0) : wideClass(text, at);
}

function wideClass(text: string, at: number): number {
  const code = text.codePointAt(at) ?? 0;
  const known = WIDE_CLASSES[code] ?? 0;
  if (known > 0) return known - 1;
  const found = classOfWide(code);
  WIDE_CLASSES[code] = found + 1;
  return found;
}

function classOfWide(code: number): number {
  if (code === FULL_WIDTH_SEMICOLON) return SIGN;
  const character = String.fromCodePoint(code);
  if (WORD_CHARACTER.test(character)) return WORD;
  return SPACE_CHARACTER.test(character) ? SPACE : 0;
}

function skipBlank(text: string, from: number): number {
  let at = from;
  for (let blanks = 0; at < text.length; blanks += 1) {
    if (blanks > MQL_BLANKS_MAX) throw tooMany(text, from, "blanks and comments in a row", "MQL_BLANKS_MAX");
    const code = text.charCodeAt(at);
    const kind = code < 128 ? CLASS_OF[code] : wideClass(text, at);
    if (kind === SPACE) at += 1;
    else if (kind === WORD) break;
    else if (beginsLineComment(text, at, code)) at = lineEnd(text, at);
    else if (code === SLASH && text.charCodeAt(at + 1) === STAR) at = commentEnd(text, at);
    else break;
  }
  return at;
}

function beginsLineComment(text: string, at: number, code: number): boolean {
  if (code === 35) return true;
  return (code === MINUS || code === SLASH) && text.charCodeAt(at + 1) === code;
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end === -1 ? text.length : end;
}

function commentEnd(text: string, at: number): number {
  const end = text.indexOf("*/", at + 2);
  if (end === -1) throw syntaxError(text, at, "*/ after this comment", "the end");
  return end + 2;
}

function word(text: string, start: number): Token {
  const end = wordEnd(text, start, start + MQL_WORD_MAX_CHARACTERS + 1);
  if (end - start > MQL_WORD_MAX_CHARACTERS) {
    throw tooMany(text, start, "characters in a word", "MQL_WORD_MAX_CHARACTERS");
  }
  const value = text.slice(start, end);
  return { kind: "word", start, end, text: value, keyword: KEYWORDS.get(value) ?? mixedCaseKeyword(value) };
}

function mixedCaseKeyword(value: string): string {
  return value.length <= 10 && MIXED_CASE.test(value) ? (KEYWORDS.get(value.toUpperCase()) ?? "") : "";
}

/** End of the letters, digits and `_` that begin at `start`; at or after `limit` if they continue beyond it. */
export function wordEnd(text: string, start: number, limit = text.length): number {
  const last = Math.min(limit, text.length);
  let at = start;
  while (at < last) {
    const code = text.charCodeAt(at);
    const kind = code < 128 ? CLASS_OF[code] : wideClass(text, at);
    if (kind !== WORD && kind !== DIGIT) break;
    at += code >= 0xd800 && code <= 0xdbff ? 2 : 1;
  }
  return at;
}

/** Reads digits, a fraction and an exponent. A digit is at `start`. */
export function number(text: string, start: number): Token {
  let end = digitsEnd(text, start);
  if (text.charCodeAt(end) === DOT && isDigit(text, end + 1)) end = digitsEnd(text, end + 1);
  const exponent = (text.charCodeAt(end) | 32) === 101 ? end + (/[+-]/.test(text.charAt(end + 1)) ? 2 : 1) : -1;
  if (exponent !== -1 && isDigit(text, exponent)) end = digitsEnd(text, exponent);
  return make("number", start, end, text.slice(start, end));
}

function digitsEnd(text: string, start: number): number {
  let at = start;
  while (isDigit(text, at)) at += 1;
  return at;
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 48 && code <= 57;
}

/** Reads a text in `'…'` or `"…"`, or a name in back-ticks. The opening quote is at `start`. */
export function quoted(text: string, start: number, quote: number): Token {
  if (quote === 34) return escapedText(text, start);
  const mark = String.fromCharCode(quote);
  let doubled = false;
  let end = text.indexOf(mark, start + 1);
  while (end !== -1 && text.charCodeAt(end + 1) === quote) {
    doubled = true;
    end = text.indexOf(mark, end + 2);
  }
  if (end === -1) throw unterminated(text, start, mark);
  const inner = text.slice(start + 1, end);
  const kind = quote === 96 ? "name" : "text";
  if (kind === "name" && inner === "") throw syntaxError(text, start, "a name between the back-ticks", "nothing");
  return make(kind, start, end + 1, doubled ? inner.replaceAll(mark + mark, mark) : inner);
}

function escapedText(text: string, start: number): Token {
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(text, start + 1, end)) end = text.indexOf('"', end + 1);
  if (end === -1) throw unterminated(text, start, '"');
  const inner = text.slice(start + 1, end);
  return make("text", start, end + 1, inner.includes("\\") ? unescape(inner) : inner);
}

/** Returns true if an odd number of backslashes precedes the mark. No backslash is read for two marks. */
function isEscaped(text: string, from: number, mark: number): boolean {
  let at = mark;
  while (at > from && text.charCodeAt(at - 1) === BACKSLASH) at -= 1;
  return (mark - at) % 2 === 1;
}

/** Writes unit by unit into one array: a callback for each of a million escapes would take seconds. */
function unescape(text: string): string {
  const units = new Uint16Array(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code !== BACKSLASH) units[length] = code;
    else {
      at += 1;
      const sign = text.charCodeAt(at);
      const unit = sign === LETTER_U ? hexUnit(text, at + 1) : -1;
      units[length] = unit >= 0 ? unit : (ESCAPES[sign] ?? sign);
      if (unit >= 0) at += 4;
    }
    length += 1;
  }
  return textOf(units.subarray(0, length));
}

/** Value of four hexadecimal digits; -1 if there are other characters. */
function hexUnit(text: string, from: number): number {
  let unit = 0;
  for (let at = from; at < from + 4; at += 1) {
    const code = text.charCodeAt(at);
    const letter = code | 32;
    if (code >= 48 && code <= 57) unit = unit * 16 + code - 48;
    else if (letter >= 97 && letter <= 102) unit = unit * 16 + letter - 87;
    else return -1;
  }
  return unit;
}

function textOf(units: Uint16Array): string {
  const pieces: string[] = [];
  for (let from = 0; from < units.length; from += PIECE_UNITS) {
    // Spreading a typed array iterates over it, which takes six times as long.
    pieces.push(Reflect.apply(String.fromCharCode, undefined, units.subarray(from, from + PIECE_UNITS)));
  }
  return pieces.join("");
}

function tooMany(text: string, start: number, what: string, limit: keyof typeof LIMITS): AppError {
  const complaint = `there are more than ${LIMITS[limit]} ${what}`;
  return errorAt(text, start, { code: "too_large", complaint, details: { limit } });
}

function unterminated(text: string, start: number, mark: string): AppError {
  return syntaxError(text, start, `a closing ${mark} for the text that begins here`, "the end");
}

/** A slash followed by a slash or a star begins a comment, which ends the path. */
export function path(text: string, start: number): Token {
  let at = start;
  while (text.charCodeAt(at) === SLASH) {
    const next = text.charCodeAt(at + 1);
    if (at > start && (next === SLASH || next === STAR)) break;
    at = wordEnd(text, at + 1);
  }
  return make("path", start, at, text.slice(start, at));
}

function sign(text: string, at: number, code: number): Token {
  const isLong = code === 60 || code === 62 || code === 33 || code === MINUS;
  const value = code === FULL_WIDTH_SEMICOLON ? ";" : ((isLong ? longSign(text, at) : undefined) ?? text.charAt(at));
  return make("sign", at, at + value.length, value === "<>" ? "!=" : value);
}

/** `<-` is an arrow only before `[`, `(` and `-`: `size<-10` compares with -10. */
function longSign(text: string, at: number): string | undefined {
  const two = text.slice(at, at + 2);
  switch (two) {
    case "!=":
    case ">=":
    case "<=":
    case "<>":
    case "->":
      return two;
    case "<-":
      if (text.charCodeAt(at + 2) === MINUS) return "<--";
      return /[[(]/.test(text.charAt(at + 2)) ? two : undefined;
    default:
      return undefined;
  }
}

function asciiEscapes(escapes: Readonly<Record<string, string>>): Uint16Array {
  const codes = Uint16Array.from({ length: 128 }, (_, code) => code);
  for (const [sign, meant] of Object.entries(escapes)) codes[sign.charCodeAt(0)] = meant.charCodeAt(0);
  return codes;
}

function asciiClasses(): Uint8Array {
  const classes = new Uint8Array(128);
  for (const code of [9, 10, 11, 12, 13, 32]) classes[code] = SPACE;
  for (const character of "()[]{},;:.=!<>+-*?/|") classes[character.charCodeAt(0)] = SIGN;
  for (const character of "'\"`") classes[character.charCodeAt(0)] = QUOTE;
  for (let code = 48; code <= 57; code += 1) classes[code] = DIGIT;
  for (let code = 65; code <= 90; code += 1) classes[code] = classes[code + 32] = WORD;
  classes[95] = WORD;
  return classes;
}
