import { AppError } from "../errors.ts";
import { TEXT_PLACES_MAX } from "../limits.ts";
import { ENCODING_EXAMPLES, markedEncoding, UTF8, type Encoding } from "./encodings.ts";
import { scannerOf, type Scanner } from "./scanners.ts";

export interface TextStreamOptions {
  /** Makes the error that the first malformed character throws. Absent: each is read as U+FFFD and counted. */
  readonly refuse?: MalformedRefusal;
  /** True where the bytes do not begin a text: a byte order mark at their beginning is a character then. */
  readonly isWithin?: boolean;
}

/** Gets the place of the first byte of the malformed character, from 0 on. */
export type MalformedRefusal = (byte: number, encoding: Encoding) => AppError;

/** A text and its malformed characters. */
export interface DecodedText {
  readonly text: string;
  /** Malformed characters; each is U+FFFD in the text. A U+FFFD that the bytes themselves say is not counted. */
  readonly malformed: number;
  /** The first bytes of the first `TEXT_PLACES_MAX` of them. */
  readonly places: readonly number[];
}

/**
 * A text whose bytes come in pieces. A character that a piece cuts comes with the next one. Every byte of a piece is read
 * or kept (at most three) before `take` answers, so the sender may use its buffer again. The mark of the encoding at the
 * beginning is no part of the text.
 */
export class TextStream {
  readonly encoding: Encoding;
  readonly #refuse: MalformedRefusal | undefined;
  readonly #scanner: Scanner;
  readonly #places: number[] = [];
  #malformed = 0;
  /** The beginning of a character that has not come whole. */
  #rest: Uint8Array = NOTHING;
  /** Bytes before `#rest`. */
  #read = 0;
  /** True until the first character is read. */
  #mayBeMark: boolean;

  constructor(encoding: Encoding = UTF8, { refuse, isWithin = false }: TextStreamOptions = {}) {
    this.encoding = encoding;
    this.#refuse = refuse;
    this.#mayBeMark = !isWithin && encoding.name.startsWith("utf-");
    this.#scanner = scannerOf(encoding);
  }

  /** Malformed characters so far. */
  get malformed(): number {
    return this.#malformed;
  }

  /** The first bytes of the first `TEXT_PLACES_MAX` malformed characters, from the beginning of the stream. */
  get places(): readonly number[] {
    return this.#places;
  }

  /** Throws what `refuse` makes of a malformed character; the stream is of no use after that. */
  take(bytes: Uint8Array): string {
    return this.#decoded(joined(this.#rest, bytes), false);
  }

  /** The text of the bytes that `take` kept: they are a cut-off character, which is malformed. Called once, at the end. */
  end(): string {
    const text = this.#decoded(this.#rest, true);
    this.#rest = NOTHING;
    return text;
  }

  #decoded(bytes: Uint8Array, isEnd: boolean): string {
    const { text, end } = this.#scanner(bytes, isEnd, (at) => this.#note(this.#read + at));
    this.#read += end;
    // `slice` of a Buffer is a view of the sender's bytes.
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

/** The text of bytes that are all there. */
export function decodeText(bytes: Uint8Array, encoding: Encoding = UTF8, options: TextStreamOptions = {}): DecodedText {
  const stream = new TextStream(encoding, options);
  const text = stream.take(bytes) + stream.end();
  return { text, malformed: stream.malformed, places: stream.places };
}

/** Refuses malformed bytes of something that its sender may name the encoding of. Tells their place counted from 1. */
export function refusing(
  subject: string,
  hint = `name its encoding by encoding=, ${ENCODING_EXAMPLES}`,
): MalformedRefusal {
  return (byte, { name }) =>
    new AppError("invalid", `${subject} is no ${name} text at byte ${byte + 1}: ${hint}.`, {
      details: { byte: byte + 1, encoding: name },
    });
}

/** The whole text of bytes without malformed characters, else the error of `refusing`. */
export function textOf(bytes: Uint8Array, refuse: MalformedRefusal, encoding: Encoding = UTF8): string {
  return decodeText(bytes, encoding, { refuse }).text;
}

/** `AppError("invalid")` where the beginning of a text has the mark of another encoding than the one it is read in. */
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
