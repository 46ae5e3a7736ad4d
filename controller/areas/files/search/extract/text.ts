import { AppError, isAppError } from "../../../../../common/errors.ts";
import { FILE_SNIFF_BYTES } from "../../../../../common/limits.ts";
import { encodingNamed, markedEncoding, UTF8, type Encoding } from "../../../../../common/text/encodings.ts";
import { refusing, textOf } from "../../../../../common/text/text-stream.ts";
import type { PassageCutter } from "./passages.ts";

/** Bytes below the blank that texts contain: tab, line feed, vertical tab, form feed, carriage return, escape. */
const CONTROLS = new Set([0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1b]);
const BLANK = 0x20;

/** Adds the lines of a text file. `AppError("invalid")` if the bytes are no text. */
export function addTextLines(bytes: Uint8Array, into: PassageCutter): void {
  const text = decoded(bytes);
  let [from, line] = [0, 1];
  while (from <= text.length && !into.isFull) {
    const end = text.indexOf("\n", from);
    const to = end === -1 ? text.length : end;
    into.addLine(text.slice(from, to), line);
    line += 1;
    from = to + 1;
  }
}

/** Encodings without a mark are tried in this order: UTF-8, then GB18030, which contains GBK and GB2312. */
function decoded(bytes: Uint8Array): string {
  const marked = markedEncoding(bytes);
  if (marked !== undefined) return textOf(bytes, refusing("The content", "it is not searched"), encodingNamed(marked));
  if (isBinary(bytes)) throw new AppError("invalid", "The content is neither a text nor docx, xlsx or pdf.");
  return inEncoding(bytes, UTF8) ?? inEncoding(bytes, encodingNamed("gb18030")) ?? refuseEncoding();
}

function inEncoding(bytes: Uint8Array, encoding: Encoding): string | undefined {
  try {
    return textOf(bytes, refusing("The content"), encoding);
  } catch (error) {
    if (isAppError(error, "invalid")) return undefined;
    throw error;
  }
}

function refuseEncoding(): never {
  throw new AppError("invalid", "The content is a text in an unknown encoding: save it in UTF-8.");
}

function isBinary(bytes: Uint8Array): boolean {
  return bytes.subarray(0, FILE_SNIFF_BYTES).some((byte) => byte < BLANK && !CONTROLS.has(byte));
}
