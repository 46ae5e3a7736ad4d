import { AppError } from "../errors.ts";
import { DELIMITER_MAX_BYTES, DELIMITER_WINDOW_BYTES, RECORD_MAX_BYTES } from "../limits.ts";
import { compilePattern, type Pattern, type PatternMatch } from "../regex/pattern.ts";
import { UTF8, type Encoding } from "../text/encodings.ts";
import { decodeText } from "../text/text-stream.ts";

/**
 * Rules for cutting bytes into raw records: the same for followed files, output of commands and uploaded text.
 *
 * Without a delimiter each line is a record. A delimiter is a regular expression that begins a record, or ends it with
 * `delimitereol`; it is part of the record. An anchored expression (`^…` or `…$`) is tested on each line; a line that
 * is too long for the test is no delimiter. Any other expression is searched in the bytes, so it may span lines. In it,
 * a non-ASCII character may occur only by itself, not in a character class. A delimiter longer than
 * `DELIMITER_MAX_BYTES` may not be found.
 *
 * Line breaks at both ends of a record are removed. Empty records are omitted. A record longer than `RECORD_MAX_BYTES`
 * is cut and marked; UTF-8 is cut at the end of a character.
 *
 * The bytes begin at a code unit of the encoding, and so does every position. Encodings other than UTF-8 support only
 * lines and anchored delimiters.
 */
export interface CutRules {
  readonly delimiter?: string | undefined;
  readonly delimitereol?: boolean | undefined;
  /** UTF-8 when absent. */
  readonly encoding?: Encoding | undefined;
}

/** Position of a record in the given bytes. `cut`: its end is missing. */
export interface Piece {
  readonly start: number;
  readonly end: number;
  readonly cut: boolean;
}

export interface CutOptions {
  /** Nothing follows, so the remaining bytes are a record. */
  readonly final?: boolean;
  /** The bytes begin within a record whose beginning was already returned as cut. */
  readonly skipping?: boolean;
}

export interface CutResult {
  readonly pieces: readonly Piece[];
  /** Number of bytes that are done. The next call begins after them. */
  readonly consumed: number;
  readonly skipping: boolean;
}

export interface RecordCutter {
  cut(bytes: Uint8Array, options?: CutOptions): CutResult;
}

/** One record ends before `end`, the next begins at `next`. */
interface Boundary {
  readonly end: number;
  readonly next: number;
}

type Boundaries = (bytes: Uint8Array, final: boolean) => Iterable<Boundary>;

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const LINE_DELIMITERS = new Set(["", "\n", "\r\n", "\\n", "\\r\\n", "\\r?\\n", "\r?\n"]);

/** Throws `AppError("invalid")` for a delimiter that cannot be used. */
export function compileCutter(rules: CutRules): RecordCutter {
  const { encoding = UTF8 } = rules;
  const boundaries = boundariesOf(rules, encoding);
  return { cut: (bytes, options = {}) => cut({ boundaries, encoding }, bytes, options) };
}

function boundariesOf(rules: CutRules, encoding: Encoding): Boundaries {
  const source = rules.delimiter ?? "";
  if (LINE_DELIMITERS.has(source)) return (bytes) => lineBreaks(bytes, encoding);
  const atEnd = rules.delimitereol === true;
  if (source.startsWith("^") || source.endsWith("$")) return linesThatMatch(compilePattern(source), atEnd, encoding);
  if (encoding.kind !== "utf-8")
    throw new AppError(
      "invalid",
      `The delimiter ${JSON.stringify(source)} is not found in ${encoding.name}: begin it with ^ or end it with $.`,
    );
  return placesThatMatch(compilePattern(asBytes(source)), atEnd);
}

function* lineBreaks(bytes: Uint8Array, encoding: Encoding): Iterable<Boundary> {
  for (let at = lineFeed(bytes, 0, encoding); at >= 0; at = lineFeed(bytes, at + encoding.unitBytes, encoding))
    yield { end: at, next: at + encoding.unitBytes };
}

/** Position of the next line feed; -1 if there is none. */
export function lineFeed(bytes: Uint8Array, from: number, { unitBytes, newline }: Encoding): number {
  if (unitBytes === 1) return bytes.indexOf(LINE_FEED, from);
  const [first = 0, second] = newline;
  for (let at = bytes.indexOf(first, from); at >= 0; at = bytes.indexOf(first, at + 1))
    if (at % unitBytes === 0 && bytes[at + 1] === second) return at;
  return -1;
}

function linesThatMatch(pattern: Pattern, atEnd: boolean, encoding: Encoding): Boundaries {
  const { unitBytes } = encoding;
  return function* (bytes, final) {
    let start = 0;
    while (start < bytes.length) {
      const found = lineFeed(bytes, start, encoding);
      if (found < 0 && !final) return;
      const end = found < 0 ? bytes.length : found;
      const next = Math.min(end + unitBytes, bytes.length);
      const isReturned = end - start >= unitBytes && isUnit(bytes, end - unitBytes, CARRIAGE_RETURN, encoding);
      const { text } = decodeText(bytes.subarray(start, isReturned ? end - unitBytes : end), encoding);
      if (pattern.fits(text) && pattern.test(text)) yield atEnd ? { end, next } : { end: start, next: start };
      start = found < 0 ? bytes.length : next;
    }
  };
}

function placesThatMatch(pattern: Pattern, atEnd: boolean): Boundaries {
  return function* (bytes, final) {
    const text = byteText(bytes);
    let from = 0;
    while (from <= text.length) {
      const match = nextMatch(pattern, text, from);
      // A match at the very end could be longer once more bytes arrive.
      if (!match || (match.end === text.length && !final)) return;
      if (match.end > match.start)
        yield atEnd ? { end: match.end, next: match.end } : { end: match.start, next: match.start };
      from = Math.max(match.end, from + 1);
    }
  };
}

/**
 * Finds the next match, in windows. Without windows, an expression that looks far ahead would read the whole text again
 * after each match.
 */
function nextMatch(pattern: Pattern, text: string, from: number): PatternMatch | undefined {
  let at = from;
  let length = DELIMITER_WINDOW_BYTES;
  for (;;) {
    const end = Math.min(text.length, at + length);
    const match = matchBetween(pattern, text, { at, end });
    if (end === text.length || (match && match.end < end)) return match;
    if (match && !pattern.fits(text.slice(at, at + 2 * length))) return match;
    // A match that ends with the window may continue after it. A match that begins near its end may end after it.
    if (match) length *= 2;
    else at = end - DELIMITER_MAX_BYTES;
  }
}

function matchBetween(
  pattern: Pattern,
  text: string,
  { at, end }: { readonly at: number; readonly end: number },
): PatternMatch | undefined {
  // The character before a position decides whether a word begins there.
  const start = Math.max(0, at - 1);
  const match = pattern.exec(text.slice(start, end), at - start);
  return match && { ...match, start: match.start + start, end: match.end + start };
}

interface Cutting {
  readonly boundaries: Boundaries;
  readonly encoding: Encoding;
}

function cut({ boundaries, encoding }: Cutting, bytes: Uint8Array, options: CutOptions): CutResult {
  const pieces: Piece[] = [];
  let start = 0;
  let skipping = options.skipping ?? false;
  const add = (from: number, to: number) => addPiece(pieces, bytes, { from, to, encoding });
  for (const { end, next } of boundaries(bytes, options.final ?? false)) {
    // A record cannot be empty, but the rest of a cut record can.
    if (next === start && !skipping) continue;
    if (!skipping) add(start, end);
    skipping = false;
    start = next;
  }
  if (options.final) {
    if (!skipping) add(start, bytes.length);
    return { pieces, consumed: bytes.length, skipping: false };
  }
  const whole = bytes.length - (bytes.length % encoding.unitBytes);
  if (skipping) return { pieces, consumed: whole, skipping };
  if (whole - start <= RECORD_MAX_BYTES) return { pieces, consumed: start, skipping: false };
  add(start, whole);
  return { pieces, consumed: whole, skipping: true };
}

function addPiece(
  pieces: Piece[],
  bytes: Uint8Array,
  { from, to, encoding }: { readonly from: number; readonly to: number; readonly encoding: Encoding },
): void {
  const { unitBytes } = encoding;
  let start = from;
  let end = to;
  while (start < end && isBreak(bytes, start, encoding)) start += unitBytes;
  while (end > start && isBreak(bytes, end - unitBytes, encoding)) end -= unitBytes;
  if (end <= start) return;
  const kept = end - start <= RECORD_MAX_BYTES ? end - start : keptOfLong(bytes.subarray(start, end), encoding);
  pieces.push({ start, end: start + kept, cut: start + kept < end });
}

function keptOfLong(bytes: Uint8Array, encoding: Encoding): number {
  return encoding.kind === "utf-8" ? keptBytes(bytes) : RECORD_MAX_BYTES;
}

/** Number of bytes of a UTF-8 text that a record keeps, up to the end of a character. */
export function keptBytes(bytes: Uint8Array): number {
  if (bytes.length <= RECORD_MAX_BYTES) return bytes.length;
  let at = RECORD_MAX_BYTES;
  while (at > RECORD_MAX_BYTES - UTF8_BYTES_MAX && isWithinCharacter(bytes[at])) at--;
  return isWithinCharacter(bytes[at]) ? RECORD_MAX_BYTES : at;
}

function isWithinCharacter(byte: number | undefined): boolean {
  return ((byte ?? 0) & 0xc0) === 0x80;
}

const UTF8_BYTES_MAX = 4;

function isBreak(bytes: Uint8Array, at: number, encoding: Encoding): boolean {
  return isUnit(bytes, at, LINE_FEED, encoding) || isUnit(bytes, at, CARRIAGE_RETURN, encoding);
}

/** True if the code unit at a position is that ASCII character. */
function isUnit(bytes: Uint8Array, at: number, character: number, { unitBytes, newline }: Encoding): boolean {
  if (unitBytes === 1) return bytes[at] === character;
  const low = newline[0] === LINE_FEED ? at : at + 1;
  return bytes[low] === character && bytes[low === at ? at + 1 : at] === 0;
}

// One character per byte, so that positions in the text are positions in the bytes.
function byteText(bytes: Uint8Array): string {
  return new TextDecoder("latin1").decode(bytes);
}

function asBytes(source: string): string {
  return byteText(new TextEncoder().encode(source));
}

/** A record of a stream. `offset`: position of its first byte in the stream. */
export interface StreamRecord {
  readonly bytes: Uint8Array;
  readonly offset: number;
  readonly cut: boolean;
}

/** Cuts a stream that arrives in chunks. Holds at most the beginning of one record. */
export class RecordStream {
  readonly #cutter: RecordCutter;
  readonly #encoding: Encoding;
  #rest: Uint8Array = new Uint8Array(0);
  #offset = 0;
  #skipping = false;

  /** `encoding` must be the one that the cutter was compiled for. */
  constructor(cutter: RecordCutter, encoding: Encoding = UTF8) {
    this.#cutter = cutter;
    this.#encoding = encoding;
  }

  /** The records that `chunk` completes. */
  push(chunk: Uint8Array): StreamRecord[] {
    return this.#cut(joined(this.#rest, chunk), false);
  }

  /**
   * Call it when a stream is silent for a while. Returns the last record although the next one has not begun, unless it
   * ends within a line.
   */
  settle(): StreamRecord[] {
    const last = this.#rest.length - this.#encoding.unitBytes;
    return last >= 0 && isUnit(this.#rest, last, LINE_FEED, this.#encoding) ? this.#cut(this.#rest, true) : [];
  }

  /** Returns the last record. */
  end(): StreamRecord[] {
    return this.#cut(this.#rest, true);
  }

  #cut(bytes: Uint8Array, final: boolean): StreamRecord[] {
    const { pieces, consumed, skipping } = this.#cutter.cut(bytes, { final, skipping: this.#skipping });
    const records = pieces.map(({ start, end, cut }) => ({
      bytes: bytes.slice(start, end),
      offset: this.#offset + start,
      cut,
    }));
    this.#rest = bytes.slice(consumed);
    this.#offset += consumed;
    this.#skipping = skipping;
    return records;
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  if (first.length === 0) return second;
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}
