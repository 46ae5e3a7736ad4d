import { NONE, quadText, TRIPLE_LEAD, tableOf, type CharacterTable } from "./character-tables.ts";
import type { Encoding } from "./encodings.ts";

/**
 * The complete characters of some bytes; a malformed one is U+FFFD. `end` is the position of an incomplete last
 * character, otherwise the number of bytes.
 */
export interface Scanned {
  readonly text: string;
  readonly end: number;
}

/**
 * `isEnd`: nothing follows, so an incomplete character is malformed. `note` gets the position of each malformed one.
 */
export type Scanner = (bytes: Uint8Array, isEnd: boolean, note: (at: number) => void) => Scanned;

const REPLACEMENT = 0xfffd;
const UTF8_WHOLE = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const UNITS = new TextDecoder("utf-16le", { ignoreBOM: true });

export function scannerOf(encoding: Encoding): Scanner {
  if (encoding.kind === "utf-8") return scanUtf8;
  if (encoding.kind === "utf-16") return encoding.name === "utf-16le" ? scanUtf16(0, 1) : scanUtf16(1, 0);
  const table = tableOf(encoding);
  return encoding.kind === "single-byte" ? scanSingle(table) : scanMulti(table);
}

/** A malformed part has the length that the Encoding Standard defines: the bytes that could begin a character. */
function scanUtf8(bytes: Uint8Array, isEnd: boolean, note: (at: number) => void): Scanned {
  const end = isEnd ? bytes.length : wholeUtf8(bytes);
  try {
    return { text: UTF8_WHOLE.decode(bytes.subarray(0, end)), end };
  } catch {
    const units = new Units(end);
    for (let at = 0; at < end; ) {
      const length = utf8Length(bytes, at, end);
      if (length > 0) units.addPoint(utf8Point(bytes, at, length));
      else {
        note(at);
        units.add(REPLACEMENT);
      }
      at += Math.abs(length);
    }
    return { text: units.text(), end };
  }
}

/** Position of an incomplete last character; the number of bytes if the last character is complete. */
function wholeUtf8(bytes: Uint8Array): number {
  const { length } = bytes;
  for (let at = length - 1; at >= Math.max(0, length - 3); at--) {
    const byte = bytes[at] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
    // Bytes that cannot become a character are malformed at once.
    return byte <= 0xf4 && at + needed > length && -utf8Length(bytes, at, length) === length - at ? at : length;
  }
  return length;
}

/** Number of bytes of the character at a position; negative: of a malformed part. */
function utf8Length(bytes: Uint8Array, at: number, end: number): number {
  const lead = bytes[at] ?? 0;
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return -1;
  const needed = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  const lower = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const upper = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  for (let next = 1; next < needed; next++) {
    const byte = at + next < end ? (bytes[at + next] ?? 0) : 0;
    if (byte < (next === 1 ? lower : 0x80) || byte > (next === 1 ? upper : 0xbf)) return -next;
  }
  return needed;
}

function utf8Point(bytes: Uint8Array, at: number, length: number): number {
  let point = (bytes[at] ?? 0) & (length === 1 ? 0x7f : 0xff >> (length + 1));
  for (let next = 1; next < length; next++) point = (point << 6) | ((bytes[at + next] ?? 0) & 0x3f);
  return point;
}

/** Malformed are a surrogate without its other half, and an incomplete character at the end. */
function scanUtf16(low: 0 | 1, high: 0 | 1): Scanner {
  return (bytes, isEnd, note) => {
    const units = new Units((bytes.length + 1) >> 1);
    const unitAt = (at: number): number => (bytes[at + low] ?? 0) | ((bytes[at + high] ?? 0) << 8);
    let at = 0;
    while (at + 1 < bytes.length) {
      const unit = unitAt(at);
      const isFirst = unit >= 0xd800 && unit <= 0xdbff;
      if (isFirst && at + 3 >= bytes.length) break;
      if (isFirst && at + 3 < bytes.length && isSecondHalf(unitAt(at + 2))) {
        units.add(unit);
        units.add(unitAt(at + 2));
        at += 4;
        continue;
      }
      const isAlone = isFirst || isSecondHalf(unit);
      if (isAlone) note(at);
      units.add(isAlone ? REPLACEMENT : unit);
      at += 2;
    }
    if (isEnd && at < bytes.length) {
      note(at);
      units.add(REPLACEMENT);
      at = bytes.length;
    }
    return { text: units.text(), end: at };
  };
}

function isSecondHalf(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function scanSingle({ single }: CharacterTable): Scanner {
  return (bytes, _isEnd, note) => {
    const units = new Units(bytes.length);
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at] ?? 0;
      const unit = byte < 0x80 ? byte : (single[byte] ?? NONE);
      if (unit === NONE && byte >= 0x80) note(at);
      units.add(unit === NONE && byte >= 0x80 ? REPLACEMENT : unit);
    }
    return { text: units.text(), end: bytes.length };
  };
}

/**
 * Decodes characters of one to four bytes. As in the Encoding Standard, an ASCII byte that does not complete the
 * character before it is a character of its own. So a malformed byte never hides a quote or a line end.
 */
function scanMulti(table: CharacterTable): Scanner {
  const { single } = table;
  return (bytes, isEnd, note) => {
    const units = new Units(bytes.length);
    let at = 0;
    while (at < bytes.length) {
      const byte = bytes[at] ?? 0;
      const unit = byte < 0x80 ? byte : (single[byte] ?? NONE);
      if (unit !== NONE || byte < 0x80) {
        units.add(unit);
        at += 1;
        continue;
      }
      const length = longerLength(table, bytes, at);
      if (length === CUT_OFF && !isEnd) break;
      if (length > 0 && length !== CUT_OFF) addLonger(units, table, bytes, at, length);
      else {
        note(at);
        units.add(REPLACEMENT);
      }
      at += length === CUT_OFF ? bytes.length - at : Math.abs(length);
    }
    return { text: units.text(), end: at };
  };
}

/** Length of a character that the end of the bytes cuts off. */
const CUT_OFF = 0;

/** Number of bytes of the longer character at a position, or `CUT_OFF`; negative: of a malformed part. */
function longerLength(table: CharacterTable, bytes: Uint8Array, at: number): number {
  const lead = bytes[at] ?? 0;
  if (table.leads[lead] === 0) return -1;
  const second = bytes[at + 1];
  if (second === undefined) return CUT_OFF;
  if (table.triples.length > 0 && lead === TRIPLE_LEAD) return tripleLength(table, bytes, at);
  if ((table.pairs[lead * 256 + second] ?? NONE) !== NONE) return 2;
  if (table.hasQuads && second >= 0x30 && second <= 0x39) return quadLength(bytes, at);
  return second < 0x80 ? -1 : -2;
}

function tripleLength({ triples }: CharacterTable, bytes: Uint8Array, at: number): number {
  const [second = 0, third] = [bytes[at + 1], bytes[at + 2]];
  if (second < 0xa1 || second > 0xfe) return second < 0x80 ? -1 : -2;
  if (third === undefined) return CUT_OFF;
  if ((triples[second * 256 + third] ?? NONE) !== NONE) return 3;
  return third < 0x80 ? -2 : -3;
}

function quadLength(bytes: Uint8Array, at: number): number {
  const [third, fourth] = [bytes[at + 2], bytes[at + 3]];
  if (third === undefined) return CUT_OFF;
  if (third < 0x81 || third === 0xff) return -1;
  if (fourth === undefined) return CUT_OFF;
  if (fourth < 0x30 || fourth > 0x39) return -1;
  return quadText(bytes, at) === undefined ? -4 : 4;
}

function addLonger(units: Units, table: CharacterTable, bytes: Uint8Array, at: number, length: number): void {
  if (length === 4) for (const unit of (quadText(bytes, at) ?? "").split("")) units.add(unit.charCodeAt(0));
  else if (length === 3) units.add(table.triples[(bytes[at + 1] ?? 0) * 256 + (bytes[at + 2] ?? 0)] ?? NONE);
  else units.add(table.pairs[(bytes[at] ?? 0) * 256 + (bytes[at + 1] ?? 0)] ?? NONE);
}

/** Collects the UTF-16 units of a text. */
class Units {
  readonly #units: Uint16Array;
  #length = 0;

  constructor(max: number) {
    this.#units = new Uint16Array(max);
  }

  add(unit: number): void {
    this.#units[this.#length++] = unit;
  }

  addPoint(point: number): void {
    if (point <= 0xffff) return this.add(point);
    this.add(0xd800 + ((point - 0x10000) >> 10));
    this.add(0xdc00 + ((point - 0x10000) & 0x3ff));
  }

  text(): string {
    return UNITS.decode(this.#units.subarray(0, this.#length));
  }
}
