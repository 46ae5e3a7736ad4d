/**
 * Up to this number of characters, a loop is cheaper than a native call. A text of this length has less than 128 bytes
 * in UTF-8.
 */
export const SHORT_CHARACTERS = 40;
const SHORT_BYTES = 16;
const ASCII_END = 0x80;

/** Writes a text in UTF-8 and returns the end position. The target must have enough space. */
export function writeText(text: string, target: Buffer, start: number): number {
  if (text.length > SHORT_CHARACTERS) return start + target.write(text, start, "utf8");
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code >= ASCII_END) return start + target.write(text, start, "utf8");
    target[start + at] = code;
  }
  return start + text.length;
}

/** The UTF-8 text from `start` to `end`. A short one needs no native call. */
export function decodeText(bytes: Buffer, start: number, end: number): string {
  const length = end - start;
  if (length > SHORT_BYTES || start + SHORT_BYTES > bytes.length || !isAscii(bytes, start, end))
    return bytes.toString("utf8", start, end);
  return sixteen(bytes, start).slice(0, length);
}

function isAscii(bytes: Buffer, start: number, end: number): boolean {
  let all = 0;
  for (let at = start; at < end; at += 1) all |= bytes[at]!;
  return all < ASCII_END;
}

/** One call with all characters costs a third of appending them one by one. */
function sixteen(bytes: Buffer, at: number): string {
  return String.fromCharCode(
    bytes[at]!,
    bytes[at + 1]!,
    bytes[at + 2]!,
    bytes[at + 3]!,
    bytes[at + 4]!,
    bytes[at + 5]!,
    bytes[at + 6]!,
    bytes[at + 7]!,
    bytes[at + 8]!,
    bytes[at + 9]!,
    bytes[at + 10]!,
    bytes[at + 11]!,
    bytes[at + 12]!,
    bytes[at + 13]!,
    bytes[at + 14]!,
    bytes[at + 15]!,
  );
}
