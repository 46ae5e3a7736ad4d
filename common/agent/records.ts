import { DELIMITER_MAX_BYTES, DELIMITER_WINDOW_BYTES, RECORD_MAX_BYTES } from "../limits.ts";
import { compilePattern, type Pattern, type PatternMatch } from "../regex/pattern.ts";

/**
 * Cuts bytes into raw records, the same for followed files, output of commands and uploaded text.
 *
 * Without a delimiter a record is a line. A delimiter is a regular expression: it begins a record, or with
 * `delimitereol` ends one; it stays part of the record. One that is anchored (`^…` or `…$`) is tried on each line; any
 * other is searched in the bytes, so it may span lines; there a character beyond ASCII may stand only by itself, not in
 * a class. One of more than `DELIMITER_MAX_BYTES` may not be found, and a line too long for an anchored one holds none.
 * Line breaks around a record are taken off, empty records left out. A record longer than `RECORD_MAX_BYTES` keeps its
 * beginning and is marked.
 */
export interface CutRules {
  readonly delimiter?: string | undefined;
  readonly delimitereol?: boolean | undefined;
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
  const boundaries = boundariesOf(rules);
  return { cut: (bytes, options = {}) => cut(boundaries, bytes, options) };
}

function boundariesOf(rules: CutRules): Boundaries {
  const source = rules.delimiter ?? "";
  if (LINE_DELIMITERS.has(source)) return lineBreaks;
  const atEnd = rules.delimitereol === true;
  if (source.startsWith("^") || source.endsWith("$")) return linesThatMatch(compilePattern(source), atEnd);
  return placesThatMatch(compilePattern(asBytes(source)), atEnd);
}

function* lineBreaks(bytes: Uint8Array): Iterable<Boundary> {
  for (let at = bytes.indexOf(LINE_FEED); at >= 0; at = bytes.indexOf(LINE_FEED, at + 1))
    yield { end: at, next: at + 1 };
}

function linesThatMatch(pattern: Pattern, atEnd: boolean): Boundaries {
  const decoder = new TextDecoder();
  return function* (bytes, final) {
    let start = 0;
    while (start < bytes.length) {
      const found = bytes.indexOf(LINE_FEED, start);
      if (found < 0 && !final) return;
      const end = found < 0 ? bytes.length : found;
      const next = Math.min(end + 1, bytes.length);
      const text = decoder.decode(
        bytes.subarray(start, bytes[end - 1] === CARRIAGE_RETURN && end > start ? end - 1 : end),
      );
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
    // What ends with the window may go on behind it; what begins near its end may end behind it.
    if (match) length *= 2;
    else at = end - DELIMITER_MAX_BYTES;
  }
}

function matchBetween(
  pattern: Pattern,
  text: string,
  { at, end }: { readonly at: number; readonly end: number },
): PatternMatch | undefined {
  // Whether a word begins at a place depends on the character before it.
  const start = Math.max(0, at - 1);
  const match = pattern.exec(text.slice(start, end), at - start);
  return match && { ...match, start: match.start + start, end: match.end + start };
}

function cut(boundaries: Boundaries, bytes: Uint8Array, options: CutOptions): CutResult {
  const pieces: Piece[] = [];
  let start = 0;
  let skipping = options.skipping ?? false;
  for (const { end, next } of boundaries(bytes, options.final ?? false)) {
    // A record cannot be empty, but the rest of a cut one can.
    if (next === start && !skipping) continue;
    if (!skipping) addPiece(pieces, bytes, start, end);
    skipping = false;
    start = next;
  }
  const rest = bytes.length - start;
  if (options.final) {
    if (!skipping) addPiece(pieces, bytes, start, bytes.length);
    return { pieces, consumed: bytes.length, skipping: false };
  }
  if (skipping) return { pieces, consumed: bytes.length, skipping };
  if (rest <= RECORD_MAX_BYTES) return { pieces, consumed: start, skipping: false };
  addPiece(pieces, bytes, start, bytes.length);
  return { pieces, consumed: bytes.length, skipping: true };
}

function addPiece(pieces: Piece[], bytes: Uint8Array, from: number, to: number): void {
  let start = from;
  let end = to;
  while (start < end && isBreak(bytes[start])) start++;
  while (end > start && isBreak(bytes[end - 1])) end--;
  if (end === start) return;
  const kept = Math.min(end, start + RECORD_MAX_BYTES);
  pieces.push({ start, end: kept, cut: kept < end });
}

function isBreak(byte: number | undefined): boolean {
  return byte === LINE_FEED || byte === CARRIAGE_RETURN;
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
  #rest: Uint8Array = new Uint8Array(0);
  #offset = 0;
  #skipping = false;

  constructor(cutter: RecordCutter) {
    this.#cutter = cutter;
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
    return this.#rest.at(-1) === LINE_FEED ? this.#cut(this.#rest, true) : [];
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
