import { AppError } from "../../../../common/errors.ts";
import { GROK_STEPS_MAX } from "../../../../common/limits.ts";
import { compileGrok } from "./grok.ts";
import { NO_TIMES, timeText } from "../definitions/times.ts";

/** Fields that an expression captures from a line, by name, or the reason why there are none. */
export type GrokMatch = { readonly fields: Readonly<Record<string, string | number>> } | { readonly error: string };

export interface GrokTrial {
  readonly expression: string;
  /** Patterns of users that the expression uses. */
  readonly patterns: Readonly<Record<string, string>>;
  /** Current time. It completes times of type `timestamp` that lack a date or year. */
  readonly nowMs: number;
}

/**
 * Returns a function that matches lines. It matches blank lines like all others; only rules leave them out.
 * `AppError("invalid")` as in `compileGrok`.
 */
export function grokTrial({ expression, patterns, nowMs }: GrokTrial): (line: string) => GrokMatch {
  if (expression === "") throw new AppError("invalid", "The pattern is empty.");
  const grok = compileGrok(expression, patterns);
  return (line) => {
    if (grok.steps(line) > GROK_STEPS_MAX)
      return { error: `It has ${line.length} characters, too many to try the pattern on.` };
    const fields = grok.match(line, (text) => timeText(text, NO_TIMES, { timeMs: nowMs }));
    return fields ? { fields } : { error: "The pattern does not match it." };
  };
}
