const MARK = " … (cut off)";

/** The beginning of a text: at most `maxCharacters` UTF-16 units, without half a surrogate pair at the end. */
export function beginningOf(text: string, maxCharacters: number): string {
  return text.slice(0, characterEnd(text, maxCharacters));
}

/** `end`, or `end - 1` if `end` is within a surrogate pair. */
export function characterEnd(text: string, end: number): number {
  const last = end > 0 && end < text.length ? text.charCodeAt(end - 1) : 0;
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}

/** Cuts a text to `maxCharacters`, including the mark at the end of a cut text. */
export function cutText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  return `${beginningOf(text, Math.max(0, maxCharacters - MARK.length))}${MARK}`;
}
