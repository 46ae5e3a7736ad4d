import { AppError } from "../errors.ts";
import { TEXT_PLACES_MAX } from "../limits.ts";
import { ENCODING_EXAMPLES, markedEncoding, UTF8, type Encoding } from "./encodings.ts";
import { scannerOf, type Scanner } from "./scanners.ts";

export interface TextStreamOptions {
  /**
   * Makes the error to throw for the first malformed character. Absent: each malformed character becomes U+FFFD and is
   * counted.
   */
  readonly refuse?: MalformedRefusal;
  /** True if the bytes do not begin the text: a byte order mark at their beginning is then an ordinary character. */
  readonly isWithin?: boolean;
}

/** Gets the position of the first byte of the malformed character, from 0. */
export type MalformedRefusal = (byte: number, encoding: Encoding) => AppError;

/** A text and its malformed characters. */
export interface DecodedText {
  readonly text: string;
  /**
   * Number of malformed characters. Each is U+FFFD in the text. A U+FFFD that is encoded in the bytes is not counted.
   */
  readonly malformed: number;
  /** Positions of the first `TEXT_PLACES_MAX` malformed characters: that of the first byte of each, from 0. */
  readonly places: readonly number[];
}

/**
 * Decodes a text that arrives in pieces. If a piece ends within a character, the next piece returns that character.
 * `take` decodes or copies every byte before it returns, and keeps at most three, so the sender may reuse its buffer. A
 * byte order mark at the beginning is not part of the text.
 */
export class TextStream {
  readonly encoding: Encoding;
  readonly #refuse: MalformedRefusal | undefined;
  readonly #scanner: Scanner;
  readonly #places: number[] = [];
  #malformed = 0;
  /** Bytes of an incomplete character. */
  #rest: Uint8Array = NOTHING;
  /** Number of bytes before `#rest`. */
  #read = 0;
  /** True while a byte order mark may still come. */
  #mayBeMark: boolean;

  constructor(encoding: Encoding = UTF8, { refuse, isWithin = false }: TextStreamOptions = {}) {
    this.encoding = encoding;
    this.#refuse = refuse;
    this.#mayBeMark = !isWithin && encoding.name.startsWith("utf-");
    this.#scanner = scannerOf(encoding);
  }

  /** Number of malformed characters so far. */
  get malformed(): number {
    return this.#malformed;
  }

  /** Positions of the first `TEXT_PLACES_MAX` malformed characters, from the beginning of the stream. */
  get places(): readonly number[] {
    return this.#places;
  }

  /** Throws the error that `refuse` makes for a malformed character. Do not use the stream after that. */
  take(bytes: Uint8Array): string {
    return this.#decoded(joined(this.#rest, bytes), false);
  }

  /** The text of the bytes that `take` kept: an incomplete character, which is malformed. Call it once, at the end. */
  end(): string {
    const text = this.#decoded(this.#rest, true);
    this.#rest = NOTHING;
    return text;
  }

  #decoded(bytes: Uint8Array, isEnd: boolean): string {
    const { text, end } = this.#scanner(bytes, isEnd, (at) => this.#note(this.#read + at));
    this.#read += end;
    // `slice` of a Buffer would be a view of the sender's bytes; this is a copy.
    this.#rest = new Uint8Array(bytes.subarray(end));
    if (!this.#mayBeMark || text === "") return text;
    this.#mayBeMark = false;
    return text.startsWith(MARK) ? text.slice(1) : text;
  }

  #note(byte: number): void {
    if (this.#refuse !== undefined) throw this.#refuse(byte, this.encoding);
    this.#malformed += 1;
    if (this.#places.length < TEXT_PLACES_MAX) this.#places.push(byte);
  }
}

/** Decodes the complete bytes of a text. */
export function decodeText(bytes: Uint8Array, encoding: Encoding = UTF8, options: TextStreamOptions = {}): DecodedText {
  const stream = new TextStream(encoding, options);
  const text = stream.take(bytes) + stream.end();
  return { text, malformed: stream.malformed, places: stream.places };
}

/** Refuses malformed bytes of data whose sender may name the encoding. The error tells the position from 1. */
export function refusing(
  subject: string,
  hint = `name its encoding by encoding=, ${ENCODING_EXAMPLES}`,
): MalformedRefusal {
  return (byte, { name }) =>
    new AppError("invalid", `${subject} is no ${name} text at byte ${byte + 1}: ${hint}.`, {
      details: { byte: byte + 1, encoding: name },
    });
}

/** Decodes a complete text; throws the error of `refuse` for a malformed character. */
export function textOf(bytes: Uint8Array, refuse: MalformedRefusal, encoding: Encoding = UTF8): string {
  return decodeText(bytes, encoding, { refuse }).text;
}

/** `AppError("invalid")` if a text begins with the byte order mark of another encoding than the one it is read in. */
export function requireMarkOf(beginning: Uint8Array, { name }: Encoding, subject: string): void {
  const marked = markedEncoding(beginning);
  if (marked === undefined || marked === name) return;
  throw new AppError(
    "invalid",
    `${subject} begins with the mark of ${marked}, and is read as ${name}: name it by encoding=${marked}.`,
  );
}

const NOTHING = new Uint8Array(0);
const MARK = "\ufeff";

function joined(before: Uint8Array, bytes: Uint8Array): Uint8Array {
  if (before.length === 0) return bytes;
  const both = new Uint8Array(before.length + bytes.length);
  both.set(before);
  both.set(bytes, before.length);
  return both;
}
