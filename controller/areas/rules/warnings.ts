import { meant } from "../../../common/text/nearest.ts";
import { missingOption } from "./compile.ts";
import { ALL_OPTIONS, bodyOf, isOption, readRuleText } from "./options.ts";

/** They are for bodies. */
const WITHOUT_EFFECT = new Set(["cache_classes", "retry", "retry_total", "retry_interval"]);

/**
 * A comment that looks like an option: prose has neither a name at the very beginning nor a sign behind its first word.
 */
const LIKE_OPTION = /^\s*(?:--|\/\/\s*--)(?:([a-z_]\w*)\s*[=:]|\s+([a-z_]\w*)\s*=)/i;

/** What a rule text says without effect, and what it lacks before it can be used. */
export function ruleWarnings(text: string): readonly string[] {
  const rule = readRuleText(text);
  const missing = missingOption(rule);
  const idle = rule.options
    .filter(({ name }) => WITHOUT_EFFECT.has(name) && bodyOf(rule) === undefined)
    .map(({ name, line }) => `Line ${line}: --${name} has no effect: the rule has no body.`);
  return [...(missing === undefined ? [] : [untilIt(missing)]), ...idle, ...unknownOptions(text)];
}

export function untilIt(missing: string): string {
  return `${missing} Until it has, its records are errors.`;
}

function unknownOptions(text: string): readonly string[] {
  const [head = ""] = [/^\n*/.exec(readRuleText(text).script)?.[0]];
  const lines = text.split(/\r?\n/);
  // In a body a comment is a comment.
  return lines.slice(0, head === "" ? lines.length : head.length).flatMap((line, at) => {
    const match = LIKE_OPTION.exec(line);
    const name = match?.[1] ?? match?.[2];
    if (name === undefined || isOption(name.toLowerCase())) return [];
    return [`Line ${at + 1}: --${name} is no option and was ignored${meant(name, ALL_OPTIONS, "--")}`];
  });
}
