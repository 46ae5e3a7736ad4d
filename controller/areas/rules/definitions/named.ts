import { isAppError } from "../../../../common/errors.ts";
import { forwardedTo, ruleClass } from "./compile.ts";
import { bodyOf, readRuleText } from "./options.ts";

/** Quoted texts that may be keys of rules or paths of classes. */
const KEYS = /(["'])(\/[^"'\\\n]{1,500})\1/g;
const LOOKUPS = /\blookup\s*\(\s*(["'])([^"'\\\n]{1,500})\1/g;

/**
 * Possible keys of the rules that a rule passes records on to: those of `--forward`, and every path in quotes in its
 * body. These rules are pinned with the rule. It can reach no others.
 */
export function rulesNamed(text: string): ReadonlySet<string> {
  return new Set([...forwardedTo(readRuleText(text)), ...pathsNamed(text)]);
}

/** Paths in quotes in the body of a rule, without trailing slashes. */
export function pathsNamed(text: string): readonly string[] {
  const body = bodyOf(readRuleText(text))?.script ?? "";
  return Array.from(body.matchAll(KEYS), ([, , path = ""]) => path.replace(/\/+$/, ""));
}

/** Names of tables in calls of `lookup` in the body. */
export function tablesNamed(text: string): ReadonlySet<string> {
  const body = bodyOf(readRuleText(text))?.script ?? "";
  return new Set(Array.from(body.matchAll(LOOKUPS), ([, , name = ""]) => name));
}

/** True if the rule has a body or forwards records. */
export function runsMore(text: string): boolean {
  const rule = readRuleText(text);
  return bodyOf(rule) !== undefined || forwardedTo(rule).length > 0;
}

/** The class that the options name. Empty if they name none or the text is unusable. */
export function classOrEmpty(text: string): string {
  try {
    return ruleClass(text);
  } catch (error) {
    if (isAppError(error)) return "";
    throw error;
  }
}
