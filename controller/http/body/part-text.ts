import { encodingNamed, type Encoding } from "../../../common/text/encodings.ts";
import { refusing, TextStream } from "../../../common/text/text-stream.ts";
import type { ThreadSlices } from "../../turns/slices.ts";
import { NAME_CHARSET } from "./body.ts";
import { replacementsOf } from "./replacements.ts";

/** No charset of a part: the parser of multipart bodies gives a character for each byte. */
export const PART_BYTES = "latin1";

/** Charsets that the parser reads itself, with U+FFFD for what is no UTF-8. */
const READ_BY_PARSER: ReadonlySet<string> = new Set(["utf-8", "utf8"]);
/** Charsets of which the parser gives the bytes, as many clients name them for every text. */
const LEFT_AS_BYTES: ReadonlySet<string> = new Set(["iso-8859-1", "us-ascii", "latin1", "ascii", "windows-1252"]);
const BEYOND_BYTES = /[^\0-\xff]/;
/** U+FFFD in bytes of UTF-8, a character for each byte. */
const REPLACEMENT_BYTES = "\u00ef\u00bf\u00bd";

/** The charset of a part's own type, and the one by `_charset_` for parts without. */
export interface PartCharset {
  readonly own: string | undefined;
  readonly common: Encoding | undefined;
}

export interface PartText {
  readonly text: string;
  /** U+FFFD in the bytes, or those that the parser put into the text. */
  readonly replacements: number;
}

/** True for a charset that the parser would read as UTF-8 or not wholly: the part is read as a stream. */
export function isOtherCharset(charset: string | undefined): boolean {
  return charset !== undefined && !READ_BY_PARSER.has(charset) && !LEFT_AS_BYTES.has(charset);
}

/** Bytes that are decoded between two looks at the clock. */
const PIECE_BYTES = 262_144;

interface PartOptions extends PartCharset {
  readonly slices: Pick<ThreadSlices, "isOverNow" | "pause">;
}

/** The text of a part that the parser gave at once. */
export async function partText(what: string, sent: string, { own, common, slices }: PartOptions): Promise<PartText> {
  const isText = (own !== undefined && READ_BY_PARSER.has(own)) || BEYOND_BYTES.test(sent);
  if (isText) return { text: sent, replacements: replacementsOf(sent).count };
  const encoding = own === undefined ? common : encodingNamed(own, "charset");
  const stream = new TextStream(encoding, { refuse: refusing(what, NAME_CHARSET), isWithin: true });
  let text = "";
  for (let at = 0; at < sent.length; at += PIECE_BYTES) {
    if (at > 0 && slices.isOverNow()) await slices.pause();
    text += stream.take(Buffer.from(sent.slice(at, at + PIECE_BYTES), PART_BYTES));
  }
  text += stream.end();
  return { text, replacements: sent.split(REPLACEMENT_BYTES).length - 1 };
}
