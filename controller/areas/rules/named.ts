import { forwardedTo } from "./compile.ts";
import { bodyOf, readRuleText } from "./options.ts";

/** Texts in quotes that may be keys of rules. */
const KEYS = /(["'])(\/[^"'\\\n]{1,500})\1/g;
const LOOKUPS = /\blookup\s*\(\s*(["'])([^"'\\\n]{1,500})\1/g;

/**
 * What may be the keys of rules that a rule passes records on to: those of `--forward`, and every path in quotes in its
 * body. They are pinned with it, and it reaches no others.
 */
export function rulesNamed(text: string): ReadonlySet<string> {
  const rule = readRuleText(text);
  const body = bodyOf(rule)?.script ?? "";
  return new Set([...forwardedTo(rule), ...Array.from(body.matchAll(KEYS), ([, , key = ""]) => key)]);
}

/** Names of tables that the body looks up. */
export function tablesNamed(text: string): ReadonlySet<string> {
  const body = bodyOf(readRuleText(text))?.script ?? "";
  return new Set(Array.from(body.matchAll(LOOKUPS), ([, , name = ""]) => name));
}
