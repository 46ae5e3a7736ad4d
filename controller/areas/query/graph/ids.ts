/** One character of an id; `*` stands for any text. */
type Piece = "*" | ((character: string) => boolean);

/**
 * Matches ids with a pattern: `*` is any text, `[1-5]` and `[abc]` are one of these characters, and every other
 * character is itself. An id that is written like the pattern always matches. Takes time linear in the id for each `*`.
 */
export function idMatcher(pattern: string): (id: string) => boolean {
  return idsMatcher([pattern]);
}

/** True for ids that match any of the patterns. */
export function idsMatcher(patterns: readonly string[]): (id: string) => boolean {
  const written = new Set(patterns);
  const pieces = patterns.filter(isPattern).map(piecesOf);
  if (pieces.length === 0) return (id) => written.has(id);
  return (id) => {
    if (written.has(id)) return true;
    const characters = [...id];
    return pieces.some((one) => matches(one, characters));
  };
}

function piecesOf(pattern: string): readonly Piece[] {
  return [...pattern.matchAll(/\*|\[([^\]]+)\]|[^]/gu)].map(([whole, set]): Piece => {
    if (whole === "*") return "*";
    return set === undefined ? (one) => one === whole : oneOf(set);
  });
}

export function isPattern(text: string): boolean {
  return /\*|\[[^\]]+\]/.test(text);
}

/** The text before the first colon; absent when the pattern stands for several labels. */
export function labelOf(pattern: string): string | undefined {
  const label = pattern.slice(0, Math.max(0, pattern.indexOf(":")));
  return label === "" || isPattern(label) ? undefined : label;
}

function oneOf(set: string): (character: string) => boolean {
  const ranges = [...set.matchAll(/([^])-([^])|[^]/gu)].map(
    ([whole, low = whole, high = whole]) => [low, high] as const,
  );
  return (character) => ranges.some(([low, high]) => low <= character && character <= high);
}

/** On a mismatch the latest `*` takes one more character. Earlier ones need not be tried again. */
function matches(pieces: readonly Piece[], text: readonly string[]): boolean {
  let piece = 0;
  let star = -1;
  let resume = 0;
  for (let at = 0; at < text.length; ) {
    const current = pieces[piece];
    if (current === "*") {
      star = piece;
      resume = at;
      piece += 1;
    } else if (current?.(text[at] ?? "")) {
      piece += 1;
      at += 1;
    } else {
      if (star === -1) return false;
      piece = star + 1;
      resume += 1;
      at = resume;
    }
  }
  return pieces.slice(piece).every((rest) => rest === "*");
}
