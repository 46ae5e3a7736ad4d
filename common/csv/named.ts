const TAB_WORDS: ReadonlySet<string> = new Set(["tab", "\\t"]);

/**
 * The character that a user names: the character itself, or `tab` or `\t`. `undefined` for a line break and for more
 * than one character.
 */
export function namedCharacter(given: string): string | undefined {
  if (TAB_WORDS.has(given.toLowerCase())) return "\t";
  return given.length === 1 && given !== "\r" && given !== "\n" ? given : undefined;
}
