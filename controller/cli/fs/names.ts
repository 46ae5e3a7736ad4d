/** Control characters, and those that change how the text around them is shown. */
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;

/** A name for a terminal: a character that the terminal would obey becomes `\u001b`. */
export function printable(name: string): string {
  return name.replaceAll(UNPRINTABLE, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
