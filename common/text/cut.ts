const MARK = " … (cut off)";

/** The first characters of a text, at most so many UTF-16 units; it never ends within a character. */
export function beginningOf(text: string, maxCharacters: number): string {
  return text.slice(0, characterEnd(text, maxCharacters));
}

/** `end`, or the place before it where `end` lies within a character of two UTF-16 units. */
export function characterEnd(text: string, end: number): number {
  const last = end > 0 && end < text.length ? text.charCodeAt(end - 1) : 0;
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}

/** A text of at most `maxCharacters`. One that is longer ends with a mark; the bound has room for it. */
export function cutText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  return `${beginningOf(text, Math.max(0, maxCharacters - MARK.length))}${MARK}`;
}
