import { encodingNamed, UTF8, type Encoding } from "../../common/text/encodings.ts";

/** The member by which a form says the charset of its values, as HTML has it. */
export const CHARSET_FIELD = "_charset_";

const NAMED = /;\s*charset\s*=\s*["']?([\w.:-]+)/i;
const IN_FORM = /(?:^|&)_charset_=([^&]*)/;

/** The charset that a content type names; `AppError("invalid")` for one that is not read here. */
export function charsetOf(contentType: string): Encoding | undefined {
  const name = NAMED.exec(contentType)?.[1];
  return name === undefined ? undefined : encodingNamed(name, "charset");
}

/** The same of the bytes of a URL-encoded form. */
export function charsetInForm(form: Buffer): Encoding | undefined {
  if (!form.includes(CHARSET_FIELD)) return undefined;
  const name = IN_FORM.exec(form.toString("latin1"))?.[1];
  return name === undefined || name === "" ? undefined : encodingNamed(name, CHARSET_FIELD);
}

/** A URL-encoded form in another encoding than UTF-8: bytes that are not escaped may be the rest of a character. */
export interface EscapedForm {
  /** A character for each byte. */
  readonly bytes: string;
  readonly encoding: Encoding;
}

/** `undefined` where the text of a form is enough to decode it: its escaped bytes are UTF-8. */
export function escapedForm(form: Buffer, encoding: Encoding): EscapedForm | undefined {
  const isText = encoding.name === UTF8.name || encoding.unitBytes > 1;
  return isText ? undefined : { bytes: form.toString("latin1"), encoding };
}
