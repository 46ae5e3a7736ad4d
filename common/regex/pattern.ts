import { RE2JS } from "re2js";
import { AppError, errorText } from "../errors.ts";
import { PATTERN_MAX_CHARACTERS, PATTERN_MAX_PROGRAM } from "../limits.ts";

/**
 * The one gate for regular expressions that users write: in policies, rules, grok patterns, MQL. Whatever passes it runs in time
 * linear in the text. Syntax is that of RE2 (JavaScript's without look-around and back-references).
 *
 * Where V8's linear engine accepts the pattern, V8's fast engine runs it and falls back to the linear one when it backtracks too
 * much; everything else runs in re2js. The first needs two flags which a program sets at its start (`REGEXP_V8_FLAGS`); without
 * them all patterns run in re2js: slower, just as safe.
 */
export interface Pattern {
  readonly source: string;
  readonly engine: "native" | "re2";
  /** In the order of their numbers. */
  readonly groupNames: readonly string[];
  test(text: string): boolean;
  /** The first match at or after `from`. */
  exec(text: string, from?: number): PatternMatch | undefined;
  /** How many groups capture, with and without name. */
  readonly groupCount: number;
  /** The first match alone, its groups by number; at 0 the whole of it. The fastest way to many groups. */
  captures(text: string): readonly (string | undefined)[] | undefined;
}

export interface PatternMatch {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** Named groups that took part. */
  readonly groups: Readonly<Record<string, string>>;
}

export interface PatternOptions {
  readonly ignoreCase?: boolean;
}

/** For `v8.setFlagsFromString`, before the first pattern is compiled. */
export const REGEXP_V8_FLAGS = [
  "--enable-experimental-regexp-engine",
  "--enable-experimental-regexp-engine-on-excessive-backtracks",
] as const;

/** Throws `AppError("invalid")` that says why: it does not parse, cannot run in linear time, or is too large. */
export function compilePattern(source: string, options: PatternOptions = {}): Pattern {
  if (source.length > PATTERN_MAX_CHARACTERS) {
    throw new AppError("invalid", `The regular expression has more than ${PATTERN_MAX_CHARACTERS} characters.`);
  }
  if (!options.ignoreCase && isLinearInV8(source)) return nativePattern(source);
  return re2Pattern(source, options);
}

function isLinearInV8(source: string): boolean {
  try {
    new RegExp(source, "l");
    return true;
  } catch {
    return false;
  }
}

function nativePattern(source: string): Pattern {
  const expression = new RegExp(source, "g");
  return {
    source,
    engine: "native",
    ...groupsIn(source),
    test(text) {
      expression.lastIndex = 0;
      return expression.test(text);
    },
    exec(text, from = 0) {
      expression.lastIndex = from;
      const match = expression.exec(text);
      if (!match) return undefined;
      const groups = present(match.groups);
      return { start: match.index, end: match.index + match[0].length, text: match[0], groups };
    },
    captures(text) {
      expression.lastIndex = 0;
      return expression.exec(text) ?? undefined;
    },
  };
}

function re2Pattern(source: string, options: PatternOptions): Pattern {
  const expression = compileRe2(source, options);
  const names = Object.keys(expression.namedGroups());
  return {
    source,
    engine: "re2",
    groupNames: names,
    groupCount: expression.groupCount(),
    test: (text) => expression.test(text),
    exec(text, from = 0) {
      const matcher = expression.matcher(text);
      if (!matcher.find(from)) return undefined;
      const groups: Record<string, string> = {};
      for (const name of names) {
        const value = matcher.group(name);
        if (value !== null && value !== undefined) groups[name] = value;
      }
      return { start: matcher.start(), end: matcher.end(), text: matcher.group() ?? "", groups };
    },
    captures(text) {
      const matcher = expression.matcher(text);
      if (!matcher.find()) return undefined;
      return Array.from({ length: expression.groupCount() + 1 }, (_, number) => matcher.group(number) ?? undefined);
    },
  };
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

function groupsIn(source: string): Pick<Pattern, "groupNames" | "groupCount"> {
  const empty = new RegExp(`${source}|`).exec("");
  return { groupNames: Object.keys(empty?.groups ?? {}), groupCount: (empty?.length ?? 1) - 1 };
}

function present(groups: Record<string, string | undefined> | undefined): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(groups ?? {})) if (value !== undefined) result[name] = value;
  return result;
}
