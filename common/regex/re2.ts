import { RE2JS } from "re2js";
import { AppError, errorText } from "../errors.ts";
import { PATTERN_BACKTRACKING_MAX_CHARACTERS, PATTERN_MAX_PROGRAM } from "../limits.ts";
import type { Pattern, PatternOptions } from "./types.ts";
import { isWithinSteps, tooManySteps } from "./steps.ts";

/** Duration of a re2js instruction relative to one of V8. */
const STEP_COST = 4;

export function re2Pattern(source: string, options: PatternOptions): Pattern {
  const expression = compileRe2(source, options);
  const names = Object.keys(expression.namedGroups());
  const cost = expression.programSize() * STEP_COST;
  const first = (text: string, from: number): Match | undefined => {
    if (!isWithinSteps(text.length, cost)) throw tooManySteps(text.length, cost);
    // The check for a match is many times faster than finding its groups.
    if (from === 0 && text.length > PATTERN_BACKTRACKING_MAX_CHARACTERS && !expression.test(text)) return undefined;
    const matcher = expression.matcher(text);
    return matcher.find(from) ? matcher : undefined;
  };
  return {
    source,
    engine: "re2",
    groupNames: names,
    groupCount: expression.groupCount(),
    fits: (text) => isWithinSteps(text.length, cost),
    steps: (text) => text.length * cost,
    test(text) {
      if (!isWithinSteps(text.length, cost)) throw tooManySteps(text.length, cost);
      return expression.test(text);
    },
    exec(text, from = 0) {
      const match = first(text, from);
      return (
        match && { start: match.start(), end: match.end(), text: match.group() ?? "", groups: groupsOf(match, names) }
      );
    },
    captures(text) {
      const match = first(text, 0);
      return (
        match && Array.from({ length: expression.groupCount() + 1 }, (_, number) => match.group(number) ?? undefined)
      );
    },
  };
}

/** `undefined` if re2js does not accept the expression. */
export function instructionsOf(source: string): number | undefined {
  try {
    return compileRe2(source, {}).programSize();
  } catch {
    return undefined;
  }
}

type Match = ReturnType<RE2JS["matcher"]>;

function groupsOf(match: Match, names: readonly string[]): Readonly<Record<string, string>> {
  const groups: Record<string, string> = {};
  for (const name of names) {
    const value = match.group(name);
    if (value !== null && value !== undefined) groups[name] = value;
  }
  return groups;
}

function compileRe2(source: string, options: PatternOptions): RE2JS {
  let expression: RE2JS;
  try {
    expression = RE2JS.compile(RE2JS.translateRegExp(source), options.ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  } catch (error) {
    throw new AppError("invalid", `The regular expression /${source}/ is not usable: ${errorText(error)}.`, {
      cause: error,
    });
  }
  if (expression.programSize() > PATTERN_MAX_PROGRAM) {
    throw new AppError("invalid", `The regular expression /${source}/ is too large: its repeats multiply.`);
  }
  return expression;
}
