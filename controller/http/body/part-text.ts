import { encodingNamed, type Encoding } from "../../../common/text/encodings.ts";
import { refusing, TextStream } from "../../../common/text/text-stream.ts";
import type { ThreadSlices } from "../../turns/slices.ts";
import { NAME_CHARSET } from "./body.ts";
import { replacementsOf } from "./replacements.ts";

/** Charset that the parser uses for parts without one: it makes one character of each byte. */
export const PART_BYTES = "latin1";

/** Charsets that the parser decodes itself; malformed UTF-8 becomes U+FFFD. */
const READ_BY_PARSER: ReadonlySet<string> = new Set(["utf-8", "utf8"]);
/** Charsets for which the parser makes one character of each byte. Many clients name them for every text. */
const LEFT_AS_BYTES: ReadonlySet<string> = new Set(["iso-8859-1", "us-ascii", "latin1", "ascii", "windows-1252"]);
const BEYOND_BYTES = /[^\0-\xff]/;
/** The UTF-8 bytes of U+FFFD, as one character per byte. */
const REPLACEMENT_BYTES = "\u00ef\u00bf\u00bd";

/** Charset of the part's own content type, and the one from `_charset_` for parts without. */
export interface PartCharset {
  readonly own: string | undefined;
  readonly common: Encoding | undefined;
}

export interface PartText {
  readonly text: string;
  /** Number of U+FFFD in the bytes, or of those that the parser put into the text. */
  readonly replacements: number;
}

/** True for a charset that the parser would decode as UTF-8 or incompletely. Such a part is read as a stream. */
export function isOtherCharset(charset: string | undefined): boolean {
  return charset !== undefined && !READ_BY_PARSER.has(charset) && !LEFT_AS_BYTES.has(charset);
}

/** Bytes that are decoded between two checks of the time slice. */
const PIECE_BYTES = 262_144;

interface PartOptions extends PartCharset {
  readonly slices: Pick<ThreadSlices, "isOverNow" | "pause">;
}

/** Decodes a part that the parser has returned as a whole. */
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
