import { AppError } from "../../../common/errors.ts";
import { HTTP_FORM_MAX_FIELDS } from "../../../common/limits.ts";
import { UTF8, type Encoding } from "../../../common/text/encodings.ts";
import { refusing, TextStream } from "../../../common/text/text-stream.ts";
import { addField, type Fields } from "./fields.ts";

/** Characters of a name or value that are decoded in one piece. */
const PIECE_CHARACTERS = 65_536;
const [SPACE, PERCENT, PLUS] = [32, 37, 43];

/**
 * Decodes a URL-encoded form or query in pieces, so that other work can run between them. Percent signs that encode
 * nothing stay unchanged. In an encoding other than UTF-8 the text must have one character per byte, because unescaped
 * bytes may be part of a character. `AppError("too_large")` for more than `HTTP_FORM_MAX_FIELDS`, `"invalid"` for
 * malformed bytes.
 */
export class FormDecoder {
  readonly #text: string;
  readonly #fields = new Map<string, unknown[]>();
  #at = 0;
  /** Position of the next equals sign. It is remembered, because thousands of fields may have none. */
  #equals = -1;
  /** End of the current name or value. */
  #end = 0;
  /** End of the current field; negative between two fields. */
  #fieldEnd = -1;
  /** Name of the field whose value is being read. */
  #name: string | undefined;
  #decoder: TextStream | undefined;
  readonly #encoding: Encoding;
  #parts: string[] = [];

  constructor(text: string, encoding: Encoding = UTF8) {
    requireFewFields(text);
    this.#text = text;
    this.#encoding = encoding;
  }

  get fields(): Fields {
    return this.#fields;
  }

  /** Does one piece of work. Returns true at the end of the text. */
  step(): boolean {
    if (this.#fieldEnd < 0 && !this.#beginField()) return true;
    const from = this.#at;
    if (this.#name === undefined && this.#parts.length === 0 && this.#fieldEnd - from <= PIECE_CHARACTERS)
      return this.#takeField();
    this.#at = this.#endOfPiece(from);
    this.#parts.push(this.#unescaped(from, this.#at));
    if (this.#at === this.#end) this.#endPart();
    return this.#fieldEnd < 0 && this.#at >= this.#text.length;
  }

  /** Reads a field that is one piece, as most are. */
  #takeField(): boolean {
    const value = this.#end < this.#fieldEnd ? this.#whole(this.#end + 1, this.#fieldEnd) : "";
    addField(this.#fields, this.#whole(this.#at, this.#end), value);
    this.#at = this.#fieldEnd;
    this.#fieldEnd = -1;
    return this.#at >= this.#text.length;
  }

  /** Returns false at the end of the text. */
  #beginField(): boolean {
    const text = this.#text;
    while (text[this.#at] === "&") this.#at++;
    if (this.#at >= text.length) return false;
    this.#fieldEnd = placeOf(text, "&", this.#at);
    if (this.#equals < this.#at) this.#equals = placeOf(text, "=", this.#at);
    this.#end = Math.min(this.#equals, this.#fieldEnd);
    this.#name = undefined;
    return true;
  }

  /** Ends the current name or value. */
  #endPart(): void {
    const part = this.#parts.join("") + (this.#decoder?.end() ?? "");
    this.#parts = [];
    this.#decoder = undefined;
    if (this.#name === undefined && this.#end < this.#fieldEnd) {
      this.#name = part;
      this.#at = this.#end + 1;
      this.#end = this.#fieldEnd;
      return;
    }
    if (this.#name === undefined) addField(this.#fields, part, "");
    else addField(this.#fields, this.#name, part);
    this.#fieldEnd = -1;
  }

  /** End of the piece that begins at `from`. A piece splits neither `%41` nor a surrogate pair. */
  #endOfPiece(from: number): number {
    const text = this.#text;
    const end = Math.min(from + PIECE_CHARACTERS, this.#end);
    if (end === this.#end) return end;
    for (const near of [end - 2, end - 1]) if (text.charCodeAt(near) === PERCENT) return near;
    const last = text.charCodeAt(end - 1);
    return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
  }

  #unescaped(from: number, end: number): string {
    this.#decoder ??= new TextStream(this.#encoding, IN_FIELD);
    return this.#decoder.take(this.#bytes(this.#text.slice(from, end)));
  }

  /** Decodes a whole name or value. */
  #whole(from: number, end: number): string {
    const text = this.#text.slice(from, end);
    const isPlain = !text.includes("%") && (this.#encoding.name === UTF8.name || !/[^\0-\x7f]/.test(text));
    if (isPlain) return text.includes("+") ? text.replaceAll("+", " ") : text;
    const stream = new TextStream(this.#encoding, IN_FIELD);
    return stream.take(this.#bytes(text)) + stream.end();
  }

  #bytes(text: string): Uint8Array {
    return unescapedBytes(Buffer.from(text, this.#encoding.name === UTF8.name ? "utf8" : "latin1"));
  }
}

/** A byte order mark at the beginning of a field is an ordinary character. */
const IN_FIELD = {
  isWithin: true,
  refuse: refusing("A form or query field", "queries are UTF-8, and a form names its charset in Content-Type"),
} as const;

/** Replaces `%41` by its byte and `+` by a space, in place. */
function unescapedBytes(bytes: Buffer): Uint8Array {
  let to = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    const escaped = byte === PERCENT ? hexByte(bytes[at + 1], bytes[at + 2]) : -1;
    if (escaped >= 0) at += 2;
    bytes[to++] = escaped >= 0 ? escaped : byte === PLUS ? SPACE : byte;
  }
  return bytes.subarray(0, to);
}

/** The byte of two hexadecimal digits; -1 if they are none. */
export function hexByte(high = 0, low = 0): number {
  const [upper, lower] = [hexDigit(high), hexDigit(low)];
  return upper < 0 || lower < 0 ? -1 : upper * 16 + lower;
}

function hexDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  const letter = code | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}

/** Counts the fields before they are decoded: the fields of a long text would take many times its size. */
function requireFewFields(text: string): void {
  let count = 0;
  for (let at = 0; at < text.length; ) {
    const end = placeOf(text, "&", at);
    if (end > at && ++count > HTTP_FORM_MAX_FIELDS)
      throw new AppError("too_large", `More than ${String(HTTP_FORM_MAX_FIELDS)} form or query fields.`);
    at = end + 1;
  }
}

/** The fields of `a=1&b[]=2&c[d]=3`, decoded at once. */
export function parseUrlEncoded(text: string, encoding?: Encoding): Fields {
  const decoder = new FormDecoder(text, encoding);
  while (!decoder.step());
  return decoder.fields;
}

function placeOf(text: string, sign: string, from: number): number {
  const place = text.indexOf(sign, from);
  return place < 0 ? text.length : place;
}
