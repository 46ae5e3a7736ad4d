import { FUZZY_CHANGES_MAX, isWithin } from "./distance.ts";

/**
 * The name that a word was probably meant to be: a few changes away, in any case of letters; the first of those that
 * are as near.
 */
export function nearestName(word: string, names: Iterable<string>): string | undefined {
  const wanted = Array.from(word.toLowerCase());
  const candidates = Array.from(names, (name) => ({ name, letters: Array.from(name.toLowerCase()) }));
  for (let changes = 0; changes <= Math.min(FUZZY_CHANGES_MAX, wanted.length - 1); changes++) {
    const found = candidates.find(({ letters }) => letters.length > changes && isWithin(wanted, letters, changes));
    if (found) return found.name;
  }
  return undefined;
}

/**
 * Ends a complaint about a name: it asks whether the nearest one was meant, with `before` in front of it, or is a full
 * stop.
 */
export function suggestion(word: string, names: Iterable<string>, before = ""): string {
  const nearest = nearestName(word, names);
  return nearest === undefined ? "." : `; did you mean ${before}${nearest}?`;
}
