import { isUtf8 } from "node:buffer";
import { encodingNamed, UTF8, type Encoding } from "../../../common/text/encodings.ts";
import { isAbsentWord } from "../input/coerce.ts";
import { hexByte } from "./form-decoder.ts";

/** The member by which a form says the charset of its values, as HTML has it. */
export const CHARSET_FIELD = "_charset_";

const NAMED = /;\s*charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;,"']*))/i;
const IN_FORM = /(?:^|&)_charset_=([^&]*)/;

/** The charset that a content type names; `AppError("invalid")` for one that is not read here. */
export function charsetOf(contentType: string): Encoding | undefined {
  const name = charsetNameIn(contentType);
  return name === undefined || name.trim() === "" ? undefined : encodingNamed(name, "charset");
}

/** The name alone, which may be empty; `undefined` where the type has none. */
export function charsetNameIn(contentType: string): string | undefined {
  const [type, double, single, plain] = NAMED.exec(contentType) ?? [];
  return type === undefined ? undefined : (double ?? single ?? plain);
}

/** The same of the bytes of a URL-encoded form. */
export function charsetInForm(form: Buffer): Encoding | undefined {
  if (!form.includes(CHARSET_FIELD)) return undefined;
  const name = IN_FORM.exec(form.toString("latin1"))?.[1];
  return name === undefined ? undefined : charsetNamed(name);
}

/** The encoding that the field `_charset_` names. An unknown name is refused at once, not when a text comes in it. */
export function charsetNamed(text: string): Encoding | undefined {
  return text.trim() === "" || isAbsentWord(text) ? undefined : encodingNamed(text, CHARSET_FIELD);
}

/** A URL-encoded form in another encoding than UTF-8: bytes that are not escaped may be the rest of a character. */
export interface EscapedForm {
  /** A character for each byte. */
  readonly bytes: string;
  readonly encoding: Encoding;
}

/** Latin-1 under any of its names: Java clients declare it for forms whose values they escape as UTF-8. */
const DECLARED_BY_DEFAULT = "windows-1252";

/** `undefined` where the text of a form is enough to decode it: its escaped bytes are UTF-8. */
export function escapedForm(form: Buffer, encoding: Encoding): EscapedForm | undefined {
  const isText =
    encoding.name === UTF8.name ||
    encoding.unitBytes > 1 ||
    (encoding.name === DECLARED_BY_DEFAULT && isUtf8(escapedBytes(form)));
  return isText ? undefined : { bytes: form.toString("latin1"), encoding };
}

const PERCENT = 0x25;
const BLANK = 0x20;

/** The escaped bytes of a form, with a blank between those that do not follow each other. */
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
