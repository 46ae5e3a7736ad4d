/** Control characters, and those that change how the text around them is shown. */
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;
/** As above, without the line break and the tab. */
const UNPRINTABLE_IN_LINES =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;

/** A name for a terminal: a character that the terminal would obey becomes `\u001b`. */
export function printable(name: string): string {
  return name.replaceAll(UNPRINTABLE, escaped);
}

/** A text of several lines for a terminal. */
export function printableLines(text: string): string {
  return text.replaceAll(UNPRINTABLE_IN_LINES, escaped);
}

/** JSON that a terminal shows and does not obey: the same value. */
export function printableJson(value: unknown, space?: number): string {
  return printableLines(JSON.stringify(value, undefined, space) ?? "null");
}

function escaped(sign: string): string {
  return `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
