const MARK = " … (cut off)";

/** A text of at most `maxCharacters`. One that is longer ends with a mark; the bound has room for it. */
export function cutText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  return `${text.slice(0, Math.max(0, maxCharacters - MARK.length))}${MARK}`;
}
