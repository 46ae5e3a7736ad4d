import { AppError } from "../errors.ts";
import { DELIMITER_MAX_BYTES, DELIMITER_WINDOW_BYTES, RECORD_MAX_BYTES } from "../limits.ts";
import { compilePattern, type Pattern, type PatternMatch } from "../regex/pattern.ts";
import { UTF8, type Encoding } from "../text/encodings.ts";
import { decodeText } from "../text/text-stream.ts";

/**
 * Cuts bytes into raw records, the same for followed files, output of commands and uploaded text.
 *
 * Without a delimiter a record is a line. A delimiter is a regular expression: it begins a record, or with
 * `delimitereol` ends one; it stays part of the record. One that is anchored (`^…` or `…$`) is tried on each line; any
 * other is searched in the bytes, so it may span lines; there a character beyond ASCII may stand only by itself, not in
 * a class. One of more than `DELIMITER_MAX_BYTES` may not be found, and a line too long for an anchored one holds none.
 * Line breaks around a record are taken off, empty records left out. A record longer than `RECORD_MAX_BYTES` keeps its
 * beginning, up to a whole character, and is marked.
 *
 * The bytes begin where a code unit of the encoding begins; all places given and answered do. In another encoding than
 * UTF-8 only lines, and delimiters that are tried on each line, are found.
 */
export interface CutRules {
  readonly delimiter?: string | undefined;
  readonly delimitereol?: boolean | undefined;
  /** UTF-8 when absent. */
  readonly encoding?: Encoding | undefined;
}

/** A record's place in the bytes given. */
export interface Piece {
  readonly start: number;
  readonly end: number;
  readonly cut: boolean;
}

export interface CutOptions {
  /** Nothing will follow: what is left is a record. */
  readonly final?: boolean;
  /** The bytes begin in the middle of a record whose beginning was already given, cut. */
  readonly skipping?: boolean;
}

export interface CutResult {
  readonly pieces: readonly Piece[];
  /** Bytes done with; the next call begins behind them. */
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

/** Throws `AppError("invalid")` for a delimiter that is not usable. */
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

/** The place of the next line feed; -1 when there is none. */
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
      // A match at the very end could grow with what follows.
      if (!match || (match.end === text.length && !final)) return;
      if (match.end > match.start)
        yield atEnd ? { end: match.end, next: match.end } : { end: match.start, next: match.start };
      from = Math.max(match.end, from + 1);
    }
  };
}

/**
 * The next match, looked for in windows: an expression that looks far ahead would otherwise read all of the text again
 * behind each of its matches.
 */
function nextMatch(pattern: Pattern, text: string, from: number): PatternMatch | undefined {
  let at = from;
  let length = DELIMITER_WINDOW_BYTES;
  for (;;) {
    const end = Math.min(text.length, at + length);
    const match = matchBetween(pattern, text, { at, end });
    if (end === text.length || (match && match.end < end)) return match;
    if (match && !pattern.fits(text.slice(at, at + 2 * length))) return match;
    // A match that ends with the window may go on behind it; one that begins near its end may end behind it.
    if (match) length *= 2;
    else at = end - DELIMITER_MAX_BYTES;
  }
}

function matchBetween(
  pattern: Pattern,
  text: string,
  { at, end }: { readonly at: number; readonly end: number },
): PatternMatch | undefined {
  // The character before a place decides if a word begins there.
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
    // A record cannot be empty, but the rest of a cut one can.
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
  const isUtf8 = encoding.kind === "utf-8";
  const kept = isUtf8 ? keptBytes(bytes.subarray(start, end)) : Math.min(end - start, RECORD_MAX_BYTES);
  pieces.push({ start, end: start + kept, cut: start + kept < end });
}

/** How many bytes of a text in UTF-8 are kept as a record, up to a whole character. */
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

/** True when the code unit at a place is that ASCII character. */
function isUnit(bytes: Uint8Array, at: number, character: number, { unitBytes, newline }: Encoding): boolean {
  if (unitBytes === 1) return bytes[at] === character;
  const low = newline[0] === LINE_FEED ? at : at + 1;
  return bytes[low] === character && bytes[low === at ? at + 1 : at] === 0;
}

// One character per byte, so that places in the text are places in the bytes.
function byteText(bytes: Uint8Array): string {
  return new TextDecoder("latin1").decode(bytes);
}

function asBytes(source: string): string {
  return byteText(new TextEncoder().encode(source));
}

/** A record of a stream, with the place of its first byte in it. */
export interface StreamRecord {
  readonly bytes: Uint8Array;
  readonly offset: number;
  readonly cut: boolean;
}

/** Cuts a stream that comes in chunks; holds at most one record's beginning. */
export class RecordStream {
  readonly #cutter: RecordCutter;
  readonly #encoding: Encoding;
  #rest: Uint8Array = new Uint8Array(0);
  #offset = 0;
  #skipping = false;

  /** `encoding`: the one that the cutter was compiled for. */
  constructor(cutter: RecordCutter, encoding: Encoding = UTF8) {
    this.#cutter = cutter;
    this.#encoding = encoding;
  }

  /** The records that `chunk` completes. */
  push(chunk: Uint8Array): StreamRecord[] {
    return this.#cut(joined(this.#rest, chunk), false);
  }

  /**
   * For a stream that has been silent for a while: a record whose next has not begun is taken as complete, unless it
   * stops in the middle of a line.
   */
  settle(): StreamRecord[] {
    const last = this.#rest.length - this.#encoding.unitBytes;
    return last >= 0 && isUnit(this.#rest, last, LINE_FEED, this.#encoding) ? this.#cut(this.#rest, true) : [];
  }

  /** The last one. */
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
