import { PATTERN_BACKTRACKING_MAX_CHARACTERS } from "../limits.ts";
import type { Pattern } from "./types.ts";
import { instructionsOf } from "./re2.ts";
import { isWithinSteps, tooManySteps } from "./steps.ts";

/** Maximum number of repeats of an expression that V8's linear engine unrolls. */
const V8_REPLICATION_MAX = 16;
/** Cost per character of V8's linear engine in addition to its instructions. */
const INSTRUCTIONS_BASE = 20;

const LINEAR_FLAGS = "gl";

/** A reference to a group by number or name. Inside its group V8 silently ignores it. */
const REFERENCE = /(?<!\\)(?:\\\\)*\\[1-9k]/;

/** Also false if the program has not set the flags. */
export function isLinearInV8(source: string): boolean {
  if (REFERENCE.test(source)) return false;
  try {
    // Compiled with the flags used later: V8 of Node 24 runs look-behind in linear time only without "g".
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
 * V8 does not count backtracks of a loop over single characters, so its backtracking engine takes quadratic time for
 * `a+b` on many `a`. Longer texts therefore go directly to its linear engine.
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
    // Counting the instructions takes longer than searching a short text.
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
