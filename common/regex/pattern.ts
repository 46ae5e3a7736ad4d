import { AppError } from "../errors.ts";
import { PATTERN_BACKTRACKS_MAX, PATTERN_MAX_CHARACTERS } from "../limits.ts";
import { isLinearInV8, nativePattern } from "./native.ts";
import { re2Pattern } from "./re2.ts";
import type { Pattern, PatternOptions } from "./types.ts";

export type * from "./types.ts";

/** Flags for `v8.setFlagsFromString`. Set them before the first pattern is compiled. */
export const REGEXP_V8_FLAGS = [
  "--enable-experimental-regexp-engine",
  "--enable-experimental-regexp-engine-on-excessive-backtracks",
  `--regexp-backtracks-before-fallback=${PATTERN_BACKTRACKS_MAX}`,
] as const;

/**
 * Throws `AppError("invalid")` with the reason: the pattern does not parse, needs more than linear time, or is too
 * large.
 */
export function compilePattern(source: string, options: PatternOptions = {}): Pattern {
  if (source.length > PATTERN_MAX_CHARACTERS) {
    throw new AppError("invalid", `The regular expression has more than ${PATTERN_MAX_CHARACTERS} characters.`);
  }
  if (!options.ignoreCase && isLinearInV8(source)) return nativePattern(source);
  return re2Pattern(source, options);
}
