import { FUZZY_CHANGES_MAX, isWithin } from "./distance.ts";

/**
 * The name that was probably meant by `word`: at most `FUZZY_CHANGES_MAX` changes away, ignoring case. Of equally near
 * names the first.
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
 * Ends an error message about an unknown name: asks whether the nearest name, with `before` in front of it, was meant.
 * Only a full stop if no name is near.
 */
export function suggestion(word: string, names: Iterable<string>, before = ""): string {
  const nearest = nearestName(word, names);
  return nearest === undefined ? "." : `; did you mean ${before}${nearest}?`;
}
