import { isUtf8 } from "node:buffer";
import { encodingNamed, UTF8, type Encoding } from "../../../common/text/encodings.ts";
import { isAbsentWord } from "../input/coerce.ts";
import { hexByte } from "./form-decoder.ts";

/** The field by which an HTML form names the charset of its values. */
export const CHARSET_FIELD = "_charset_";

const NAMED = /;\s*charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;,"']*))/i;
const IN_FORM = /(?:^|&)_charset_=([^&]*)/;

/** Charset that a content type names; `undefined` if it names none. `AppError("invalid")` for an unsupported one. */
export function charsetOf(contentType: string): Encoding | undefined {
  const name = charsetNameIn(contentType);
  return name === undefined || name.trim() === "" ? undefined : encodingNamed(name, "charset");
}

/** Name of the charset, which may be empty; `undefined` if the type names none. */
export function charsetNameIn(contentType: string): string | undefined {
  const [type, double, single, plain] = NAMED.exec(contentType) ?? [];
  return type === undefined ? undefined : (double ?? single ?? plain);
}

/** Charset that a URL-encoded form names in its field `_charset_`. */
export function charsetInForm(form: Buffer): Encoding | undefined {
  if (!form.includes(CHARSET_FIELD)) return undefined;
  const name = IN_FORM.exec(form.toString("latin1"))?.[1];
  return name === undefined ? undefined : charsetNamed(name);
}

/** Encoding that the field `_charset_` names. An unknown name is refused immediately, even if no text uses it. */
export function charsetNamed(text: string): Encoding | undefined {
  return text.trim() === "" || isAbsentWord(text) ? undefined : encodingNamed(text, CHARSET_FIELD);
}

/** A URL-encoded form in an encoding other than UTF-8. Unescaped bytes may be part of a character. */
export interface EscapedForm {
  /** One character per byte. */
  readonly bytes: string;
  readonly encoding: Encoding;
}

/** Standard name of Latin-1. Java clients declare it for forms whose values they escape as UTF-8. */
const DECLARED_BY_DEFAULT = "windows-1252";

/** `undefined` if the text of the form suffices to decode it, because its escaped bytes are UTF-8. */
export function escapedForm(form: Buffer, encoding: Encoding): EscapedForm | undefined {
  const isText =
    encoding.name === UTF8.name ||
    encoding.unitBytes > 1 ||
    (encoding.name === DECLARED_BY_DEFAULT && isUtf8(escapedBytes(form)));
  return isText ? undefined : { bytes: form.toString("latin1"), encoding };
}

const PERCENT = 0x25;
const BLANK = 0x20;

/** The escaped bytes of a form, with a blank for each other byte. */
function escapedBytes(form: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(form.length);
  let length = 0;
  for (let at = 0; at < form.length; at++) {
    const escaped = form[at] === PERCENT ? hexByte(form[at + 1], form[at + 2]) : -1;
    if (escaped >= 0) at += 2;
    bytes[length++] = escaped >= 0 ? escaped : BLANK;
  }
  return bytes.subarray(0, length);
}
