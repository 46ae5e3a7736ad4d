/** Maximum number of changes between words that count as similar. */
export const FUZZY_CHANGES_MAX = 2;

/**
 * True when at most `max` changes turn one word into the other. A change adds, removes or replaces one character, or
 * exchanges two neighbours (optimal string alignment, the restricted Damerau–Levenshtein distance). Time grows with the
 * product of the lengths.
 */
export function isWithin(left: readonly string[], right: readonly string[], max: number): boolean {
  if (Math.abs(left.length - right.length) > max) return false;
  const [same, sameEnd] = commonEnds(left, right);
  return isMiddleWithin(left.slice(same, left.length - sameEnd), right.slice(same, right.length - sameEnd), max);
}

/** Lengths of the common beginning and of the common end of the rest. They never change the number of changes. */
function commonEnds(left: readonly string[], right: readonly string[]): readonly [beginning: number, end: number] {
  const shorter = Math.min(left.length, right.length);
  let beginning = 0;
  while (beginning < shorter && left[beginning] === right[beginning]) beginning++;
  let end = 0;
  while (end < shorter - beginning && left[left.length - 1 - end] === right[right.length - 1 - end]) end++;
  return [beginning, end];
}

function isMiddleWithin(left: readonly string[], right: readonly string[], max: number): boolean {
  let before: number[] = [];
  let above = Array.from({ length: right.length + 1 }, (_, at) => at);
  for (const [row, character] of left.entries()) {
    const current = [row + 1];
    for (const [column, other] of right.entries()) {
      const changed = at(above, column) + (character === other ? 0 : 1);
      let best = Math.min(changed, at(above, column + 1) + 1, at(current, column) + 1);
      if (row > 0 && column > 0 && character === right[column - 1] && left[row - 1] === other)
        best = Math.min(best, at(before, column - 1) + 1);
      current.push(best);
    }
    if (Math.min(...current) > max && Math.min(...above) > max) return false;
    before = above;
    above = current;
  }
  return at(above, right.length) <= max;
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Infinity;
}
