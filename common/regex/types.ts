/**
 * The one gate for regular expressions that users write: in policies, rules, grok patterns. A pattern that passes it
 * runs in time linear in the text, and in at most `PATTERN_STEPS_MAX` steps. Syntax is that of RE2 (JavaScript's
 * without look-around and back-references).
 *
 * Where V8's linear engine accepts the pattern, V8's backtracking engine runs it on texts of up to
 * `PATTERN_BACKTRACKING_MAX_CHARACTERS` and its linear engine on longer ones; both find the same. Everything else runs
 * in re2js. V8 needs flags which a program sets at its start (`REGEXP_V8_FLAGS`); without them all patterns run in
 * re2js: slower, just as safe.
 *
 * Methods throw `AppError("too_large")` for a text that `fits` refuses.
 */
export interface Pattern {
  readonly source: string;
  readonly engine: "native" | "re2";
  /** In the order of their numbers. */
  readonly groupNames: readonly string[];
  /** Returns true if the text is short enough for the work of the pattern at each character. */
  fits(text: string): boolean;
  /** Upper bound of the instructions that a search of the text runs, by a rough estimate. */
  steps(text: string): number;
  test(text: string): boolean;
  /** The first match at or after `from`. */
  exec(text: string, from?: number): PatternMatch | undefined;
  /** Number of capturing groups, with and without name. */
  readonly groupCount: number;
  /** Groups of the first match by number; index 0 is the whole match. The fastest way to read many groups. */
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
