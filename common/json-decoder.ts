import { AppError } from "./errors.ts";
import {
  HTTP_JSON_ARRAY_BYTES,
  HTTP_JSON_DEPTH_MAX,
  HTTP_JSON_ELEMENT_BYTES,
  HTTP_JSON_ELEMENTS_MAX,
  HTTP_JSON_MEMBER_BYTES,
  HTTP_JSON_MEMBERS_MAX,
  HTTP_JSON_OBJECT_BYTES,
  HTTP_JSON_STRING_BYTES,
  HTTP_JSON_STRING_MAX_CHARACTERS,
  HTTP_TURN_LIST_MAX_ITEMS,
} from "./limits.ts";
import { positionAt } from "./mql/position.ts";
import { numberOf } from "./numbers.ts";

/** A bound, with its name for errors. */
export interface Bound {
  readonly name: string;
  readonly max: number;
}

/** Bounds of one JSON text. An error about a bound contains its name. */
export interface JsonBounds {
  /** Nesting of objects and lists. */
  readonly depth: Bound;
  /** Members of all objects together. */
  readonly members: Bound;
  /** Elements of all lists together. */
  readonly elements: Bound;
  /** Characters of one string or name as written. */
  readonly stringCharacters: Bound;
}

/** Bounds of texts that arrive by HTTP. */
export const HTTP_JSON_BOUNDS: JsonBounds = {
  depth: { name: "HTTP_JSON_DEPTH_MAX", max: HTTP_JSON_DEPTH_MAX },
  members: { name: "HTTP_JSON_MEMBERS_MAX", max: HTTP_JSON_MEMBERS_MAX },
  elements: { name: "HTTP_JSON_ELEMENTS_MAX", max: HTTP_JSON_ELEMENTS_MAX },
  stringCharacters: { name: "HTTP_JSON_STRING_MAX_CHARACTERS", max: HTTP_JSON_STRING_MAX_CHARACTERS },
};

/** Values, and characters of one string, after which a piece of work ends. */
const PIECE_VALUES = 1_000;
const PIECE_CHARACTERS = 262_144;
/**
 * V8 copies substrings up to this length. A longer one refers to the whole text, and would keep a whole body in memory.
 */
const COPIED_MAX_CHARACTERS = 12;

const QUOTE = 34;
const COMMA = 44;
const MINUS = 45;
const COLON = 58;
const OPEN_LIST = 91;
const BACKSLASH = 92;
const CLOSE_LIST = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/** Longer numbers are refused: no double has so many significant digits. */
const NUMBER_MAX_CHARACTERS = 1_000;
/** The longest escape sequence has the form `\u0041`. */
const ESCAPE_MAX_CHARACTERS = 6;

const WORDS = new Map<number, readonly [string, boolean | null]>([
  [116, ["true", true]],
  [102, ["false", false]],
  [110, ["null", null]],
]);

type Container = Record<string, unknown> | unknown[];

/** Objects and lists that are known to be large. Counting their values again would take as long as reading them. */
const large = new WeakSet<object>();

/**
 * True for an object or list from a decoder with more than `HTTP_TURN_LIST_MAX_ITEMS` values at all depths. Such a
 * value must be processed in slices.
 */
export function isLargeJson(value: unknown): value is object {
  return typeof value === "object" && value !== null && large.has(value);
}

/** Marks a value that was made from a large one as large. */
export function noteLargeJson(value: object): void {
  large.add(value);
}

/**
 * Decodes one JSON text in pieces, so that other work can run between them. It differs from `JSON.parse` in three ways.
 * Numbers beyond 2^53 without an exponent become text (`numberOf`). Members named `__proto__` are left out, and so are
 * members named `constructor` whose value is an object with a member `prototype`. The text has bounds.
 */
export class JsonDecoder {
  readonly #text: string;
  readonly #bounds: JsonBounds;
  #at = 0;
  #members = 0;
  #elements = 0;
  #weight = 0;
  /** Open containers, the innermost last. `#names` has the names of the members that are being read. */
  readonly #open: Container[] = [];
  /** Number of values before each open container. */
  readonly #before: number[] = [];
  readonly #names: string[] = [];
  /** Decoded parts of a string whose end is not reached yet. */
  #parts: string[] | undefined;
  #state: "value" | "first" | "name" | "string" | "named" | "after" | "end" = "value";
  /** True if the current string is the name of a member. */
  #isName = false;
  #stringFrom = 0;
  #result: unknown;

  constructor(text: string, bounds: JsonBounds = HTTP_JSON_BOUNDS) {
    this.#text = text;
    this.#bounds = bounds;
  }

  /** The decoded value. Valid after `step` has returned true. */
  get value(): unknown {
    return this.#result;
  }

  /** Estimated bytes of the values that were decoded since the last call. */
  takeWeight(): number {
    const weight = this.#weight;
    this.#weight = 0;
    return weight;
  }

  /**
   * Does one piece of work: at most `values` values, about a millisecond. Returns true at the end of the text.
   * `AppError("syntax")` for a text that is no JSON, `AppError("too_large")` beyond a bound.
   */
  step(values = PIECE_VALUES): boolean {
    const end = this.#at + PIECE_CHARACTERS;
    for (let left = values; left > 0 && this.#at < end; left--) {
      if (this.#state === "end") return true;
      this.#token();
    }
    return this.#state === "end";
  }

  #token(): void {
    switch (this.#state) {
      case "string":
        return this.#goOnWithString();
      case "value":
        return this.#value(this.#next());
      case "first":
        return this.#first();
      case "name":
        return this.#name(this.#next());
      case "named":
        if (this.#next() !== COLON) throw this.#unexpected();
        this.#at++;
        return this.#value(this.#next());
      default:
        return this.#after();
    }
  }

  /** After the sign that opens a container. */
  #first(): void {
    const isList = Array.isArray(this.#open.at(-1));
    const code = this.#next();
    if (code === (isList ? CLOSE_LIST : CLOSE_OBJECT)) return this.#close();
    if (isList) this.#value(code);
    else this.#name(code);
  }

  /** After a value: the next one of its container, or the container's end. */
  #after(): void {
    const container = this.#open.at(-1);
    if (container === undefined) {
      this.#skipSpace();
      if (this.#at < this.#text.length) throw this.#unexpected();
      this.#state = "end";
      return;
    }
    const isList = Array.isArray(container);
    const code = this.#next();
    if (code === (isList ? CLOSE_LIST : CLOSE_OBJECT)) return this.#close();
    if (code !== COMMA) throw this.#unexpected();
    this.#at++;
    if (isList) this.#value(this.#next());
    else this.#name(this.#next());
  }

  #value(code: number): void {
    if (code === QUOTE) this.#string(false);
    else if (code === OPEN_OBJECT) this.#begin({}, HTTP_JSON_OBJECT_BYTES);
    else if (code === OPEN_LIST) this.#begin([], HTTP_JSON_ARRAY_BYTES);
    else if (code === MINUS || (code >= 48 && code <= 57)) this.#put(this.#number());
    else this.#put(this.#word(code));
  }

  #name(code: number): void {
    if (code !== QUOTE) throw this.#unexpected();
    this.#string(true);
  }

  #begin(container: Container, weight: number): void {
    const { depth } = this.#bounds;
    if (this.#open.length >= depth.max) throw tooLarge(`is nested deeper than ${depth.max} levels`, depth);
    this.#weight += weight;
    this.#at++;
    this.#open.push(container);
    this.#before.push(this.#members + this.#elements);
    this.#state = "first";
  }

  #close(): void {
    this.#at++;
    const container = this.#open.pop();
    const count = this.#members + this.#elements - (this.#before.pop() ?? 0);
    if (container !== undefined && count > HTTP_TURN_LIST_MAX_ITEMS) large.add(container);
    this.#put(container);
  }

  /** Adds a value to its container. */
  #put(value: unknown): void {
    this.#state = "after";
    const container = this.#open.at(-1);
    if (container === undefined) {
      this.#result = value;
      return;
    }
    const { members, elements } = this.#bounds;
    if (Array.isArray(container)) {
      if (++this.#elements > elements.max) throw tooLarge(`has more than ${elements.max} elements of lists`, elements);
      this.#weight += HTTP_JSON_ELEMENT_BYTES;
      container.push(value);
      return;
    }
    if (++this.#members > members.max) throw tooLarge(`has more than ${members.max} members of objects`, members);
    this.#weight += HTTP_JSON_MEMBER_BYTES;
    const name = this.#names.pop() ?? "";
    if (!reachesPrototype(name, value)) container[name] = value;
    else if (name === "constructor") Reflect.deleteProperty(container, name);
  }

  #string(isName: boolean): void {
    this.#isName = isName;
    const from = ++this.#at;
    const text = this.#text;
    // Most strings are short and plain, so they are read directly.
    const most = from + COPIED_MAX_CHARACTERS;
    for (let at = from; at <= most; at++) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        this.#at = at + 1;
        return this.#stringDone(text.slice(from, at));
      }
      if (code === BACKSLASH || !(code >= 32)) break;
    }
    this.#stringFrom = from;
    this.#parts = undefined;
    this.#goOnWithString();
  }

  /** Decodes the next part of a long string, or the whole string. */
  #goOnWithString(): void {
    const from = this.#at;
    const found = endOfStringPart(this.#text, from);
    if (found === undefined) throw this.#endsTooEarly();
    const { end, isLast } = found;
    const { stringCharacters: bound } = this.#bounds;
    if (end - this.#stringFrom > bound.max) throw tooLarge(`has a string of more than ${bound.max} characters`, bound);
    const part = unescaped(this.#text.slice(from, end));
    if (part === undefined) throw this.#badString(from, end);
    this.#at = isLast ? end + 1 : end;
    if (!isLast) {
      (this.#parts ??= []).push(part);
      this.#state = "string";
      return;
    }
    const parts = this.#parts;
    this.#parts = undefined;
    this.#stringDone(parts === undefined ? part : [...parts, part].join(""));
  }

  #stringDone(text: string): void {
    this.#weight += HTTP_JSON_STRING_BYTES;
    if (!this.#isName) return this.#put(text);
    this.#names.push(text);
    this.#state = "named";
  }

  /** A number; its text if no double can hold it (`numberOf`). */
  #number(): number | string {
    const from = this.#at;
    const text = this.#text;
    let at = from;
    while (isOfNumber(text.charCodeAt(at))) {
      if (++at - from > NUMBER_MAX_CHARACTERS)
        throw this.#fault(`a number of more than ${NUMBER_MAX_CHARACTERS} characters`, from);
    }
    const digits = text.slice(from, at);
    if (!NUMBER.test(digits)) throw this.#unexpected();
    this.#at = at;
    return numberOf(digits);
  }

  #word(code: number): boolean | null {
    const [word, value] = WORDS.get(code) ?? ["", null];
    if (word === "" || !this.#text.startsWith(word, this.#at)) throw this.#unexpected();
    this.#at += word.length;
    return value;
  }

  /** Skips whitespace. Returns the code of the next character, which is at `#at`. */
  #next(): number {
    this.#skipSpace();
    if (this.#at >= this.#text.length) throw this.#endsTooEarly();
    return this.#text.charCodeAt(this.#at);
  }

  #skipSpace(): void {
    while (isSpace(this.#text.charCodeAt(this.#at))) this.#at++;
  }

  #unexpected(): AppError {
    if (this.#at >= this.#text.length) return this.#endsTooEarly();
    return this.#fault(`unexpected ${JSON.stringify(String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 0))}`);
  }

  #endsTooEarly(): AppError {
    return this.#fault("it ends too early", this.#text.length);
  }

  #badString(from: number, end: number): AppError {
    const at = from + faultInString(this.#text.slice(from, end));
    return this.#fault("a string has a control character or an unknown escape sequence", at);
  }

  #fault(what: string, at = this.#at): AppError {
    const { line, column } = positionAt(this.#text, at);
    return new AppError("syntax", `Not valid JSON: ${what} at line ${line} column ${column}.`, {
      details: { line, column },
    });
  }
}

function isSpace(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9;
}

function isOfNumber(code: number): boolean {
  return (code >= 48 && code <= 57) || code === MINUS || code === 43 || code === 46 || code === 101 || code === 69;
}

/**
 * The end of the string whose rest begins at `from`, or of a part of it. A part never ends within an escape sequence.
 * `undefined` if the text ends before the string does.
 */
function endOfStringPart(text: string, from: number): { readonly end: number; readonly isLast: boolean } | undefined {
  const most = Math.min(text.length, from + PIECE_CHARACTERS);
  for (let at = from; at < most; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return { end: at, isLast: true };
    if (code !== BACKSLASH) continue;
    if (at + ESCAPE_MAX_CHARACTERS > most && most < text.length) return { end: at, isLast: false };
    at++;
  }
  return most === text.length ? undefined : { end: most, isLast: false };
}

/** Decodes a part of a string; `undefined` for a wrong one. `JSON.parse` is the fastest decoder of escape sequences. */
function unescaped(part: string): string | undefined {
  try {
    return JSON.parse(`"${part}"`) as string;
  } catch {
    return undefined;
  }
}

/** A whole escape sequence, or one character that is none and that no string of JSON has. */
const ESCAPE_OR_FAULT = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})|[\\\u0000-\u001f]/g;

/** Offset of the first control character or unknown escape sequence in a part of a string. */
function faultInString(part: string): number {
  for (const { 0: found, index } of part.matchAll(ESCAPE_OR_FAULT)) if (found.length === 1) return index;
  return part.length;
}

function reachesPrototype(name: string, value: unknown): boolean {
  if (name === "__proto__") return true;
  return name === "constructor" && typeof value === "object" && value !== null && "prototype" in value;
}

function tooLarge(what: string, { name, max }: Bound): AppError {
  return new AppError("too_large", `The JSON ${what} (${name}).`, { details: { limit: name, max } });
}
