import { PATTERN_BACKTRACKING_MAX_CHARACTERS } from "../limits.ts";
import type { Pattern } from "./types.ts";
import { instructionsOf } from "./re2.ts";
import { isWithinSteps, tooManySteps } from "./steps.ts";

/** Repeats of an expression that V8's linear engine writes out, at most. */
const V8_REPLICATION_MAX = 16;
/** What V8's linear engine does for a character besides its instructions. */
const INSTRUCTIONS_BASE = 20;

const LINEAR_FLAGS = "gl";

/** To a group by number or name. Inside its group V8 drops it in silence. */
const REFERENCE = /(?<!\\)(?:\\\\)*\\[1-9k]/;

/** False as well where the program has not set the flags. */
export function isLinearInV8(source: string): boolean {
  if (REFERENCE.test(source)) return false;
  try {
    // With the flags it is used with: V8 of Node 24 runs what looks behind in linear time without "g" only.
    new RegExp(source, LINEAR_FLAGS);
    return true;
  } catch {
    return false;
  }
}

export function nativePattern(source: string): Pattern {
  const search = searchOf(source);
  return {
    source,
    engine: "native",
    ...groupsIn(source),
    fits: search.fits,
    steps: search.steps,
    test: (text) => search.exec(text, 0) !== null,
    exec(text, from = 0) {
      const match = search.exec(text, from);
      if (!match) return undefined;
      return { start: match.index, end: match.index + match[0].length, text: match[0], groups: present(match.groups) };
    },
    captures: (text) => search.exec(text, 0) ?? undefined,
  };
}

interface Search {
  fits(text: string): boolean;
  steps(text: string): number;
  exec(text: string, from: number): RegExpExecArray | null;
}

/**
 * V8 counts no backtrack of a loop over single characters, so that its backtracking engine needs quadratic time for
 * `a+b` on many `a`: longer texts go to its linear engine at once.
 */
function searchOf(source: string): Search {
  const backtracking = new RegExp(source, "g");
  const linear = new RegExp(source, LINEAR_FLAGS);
  let known: number | undefined;
  const instructions = (): number =>
    (known ??= INSTRUCTIONS_BASE + (instructionsOf(source) ?? source.length * V8_REPLICATION_MAX));
  const isShort = (characters: number): boolean => characters <= PATTERN_BACKTRACKING_MAX_CHARACTERS;
  return {
    fits: (text) => isShort(text.length) || isWithinSteps(text.length, instructions()),
    // To count the instructions takes longer than to search a short text.
    steps: (text) => text.length * (isShort(text.length) ? source.length : instructions()),
    exec(text, from) {
      const characters = text.length - from;
      const expression = isShort(characters) ? backtracking : linear;
      if (expression === linear && !isWithinSteps(characters, instructions()))
        throw tooManySteps(characters, instructions());
      expression.lastIndex = from;
      return expression.exec(text);
    },
  };
}

function groupsIn(source: string): Pick<Pattern, "groupNames" | "groupCount"> {
  const empty = new RegExp(`${source}|`).exec("");
  return { groupNames: Object.keys(empty?.groups ?? {}), groupCount: (empty?.length ?? 1) - 1 };
}

function present(groups: Record<string, string | undefined> | undefined): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(groups ?? {})) if (value !== undefined) result[name] = value;
  return result;
}
