import { namedCharacter } from "../../../../common/csv/named.ts";
import { AppError } from "../../../../common/errors.ts";
import { SHEET_ROW_MAX_CHARACTERS } from "../../../../common/limits.ts";

const CANDIDATES = [",", ";", "\t"] as const;

/** Parses the delimiter of a request: one character, or the word `tab`. */
export function namedDelimiter(given: string): string {
  const delimiter = namedCharacter(given);
  if (delimiter !== undefined && delimiter !== '"') return delimiter;
  throw new AppError(
    "invalid",
    `[Valid] delimiter=${JSON.stringify(given)}: it is one character, such as , or ; or the word tab.`,
  );
}

export function shownDelimiter(delimiter: string): string {
  return delimiter === "\t" ? "tab" : delimiter;
}

/**
 * The first non-empty line of a text, without its line end. `undefined` if the line is incomplete and more text may
 * follow (`isOver` is false).
 */
export function headingLine(text: string, isOver: boolean): string | undefined {
  const start = /^[\r\n]*/.exec(text)?.[0].length ?? 0;
  let isQuoted = false;
  for (let at = start; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (character === "\n" || character === "\r")) return text.slice(start, at);
  }
  if (text.length > SHEET_ROW_MAX_CHARACTERS)
    throw new AppError(
      "too_large",
      `[Format] The heading line has more than ${SHEET_ROW_MAX_CHARACTERS} characters; are quotes not closed?`,
      { details: { limit: "SHEET_ROW_MAX_CHARACTERS" } },
    );
  return isOver ? text.slice(start) : undefined;
}

/**
 * The delimiter that occurs most often in a heading line, outside of quotes; a comma if none occurs.
 * `AppError("invalid")` if two occur equally often.
 */
export function foundDelimiter(heading: string): string {
  const counts = new Map<string, number>(CANDIDATES.map((candidate) => [candidate, 0]));
  let isQuoted = false;
  for (const character of heading) {
    const count = counts.get(character);
    if (character === '"') isQuoted = !isQuoted;
    else if (!isQuoted && count !== undefined) counts.set(character, count + 1);
  }
  const most = Math.max(...counts.values());
  const [found = ",", second] = CANDIDATES.filter((candidate) => most > 0 && counts.get(candidate) === most);
  if (second === undefined) return found;
  throw new AppError(
    "invalid",
    `[Format] The heading line has ${shownDelimiter(found)} as often as ${shownDelimiter(second)}: say by delimiter= which of them stands between values.`,
  );
}
