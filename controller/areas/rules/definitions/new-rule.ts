import { AppError } from "../../../../common/errors.ts";
import { GROK_PATTERNS_PER_RULE_MAX } from "../../../../common/limits.ts";
import type { ClassView } from "../../objects/index.ts";
import { compileGrok } from "../grok/grok.ts";

/**
 * The input of `rule/new`. `fields` and `mapping` are for grok: names of patterns, and class field to captured name. If
 * the mapping uses several patterns, a line consists of all patterns with blanks between them. Otherwise the patterns
 * are alternatives.
 */
export interface NewRule {
  readonly class: string;
  readonly type: "text" | "json" | "csv" | "grok";
  readonly fields?: readonly string[];
  readonly mapping?: Readonly<Record<string, string>>;
}

/** Options of a rule text, as pairs of name and value. */
type Options = readonly (readonly [string, string])[];

/**
 * Options of a grok rule. `own`: the tenant's patterns, by name. `AppError("invalid")` if patterns or mapping are
 * missing or do not fit each other, `too_large` for more than `GROK_PATTERNS_PER_RULE_MAX` patterns.
 */
export function grokOptions({ fields, mapping }: NewRule, own: Parameters<typeof compileGrok>[1]): Options {
  if (!fields || fields.length === 0)
    throw new AppError("invalid", "A grok rule needs fields: the names of its patterns.");
  if (!mapping || Object.keys(mapping).length === 0)
    throw new AppError("invalid", "A grok rule needs a mapping of class fields to patterns.");
  if (fields.length > GROK_PATTERNS_PER_RULE_MAX)
    throw new AppError("too_large", `A rule has at most ${GROK_PATTERNS_PER_RULE_MAX} patterns.`);
  const patterns = fields.map((name) => `%{${name}}`);
  const captures = patterns.map((pattern) => compileGrok(pattern, own).captures);
  const captured = new Set(captures.flat());
  for (const [field, name] of Object.entries(mapping)) {
    if (!captured.has(name))
      throw new AppError("invalid", `The mapping of ${field}: no pattern of the rule captures ${name}.`);
  }
  const expressions = isOneLine(captures, mapping) ? [patterns.join(BLANKS)] : patterns;
  return [
    ...expressions.map((expression, index) => [`pattern_${index + 1}`, expression] as const),
    ...Object.entries(mapping).map(([field, name]) => [`var_${field}`, `field ${name}`] as const),
  ];
}

/** Separates successive patterns of a line. */
const BLANKS = "[ \\t]+";

/** True if the mapping uses several patterns: then a line consists of all patterns. */
function isOneLine(captures: readonly (readonly string[])[], mapping: Readonly<Record<string, string>>): boolean {
  const mapped = new Set(Object.values(mapping));
  // The mapping uses a pattern if it has the first name that the pattern captures.
  const names = new Set(captures.flatMap((ofPattern) => ofPattern.slice(0, 1)));
  return [...names].filter((name) => mapped.has(name)).length > 1;
}

/** Options of a rule of another type. `AppError("not_found")` for a column that the class lacks. */
export function fieldOptions(rule: NewRule, view: ClassView): Options {
  const unknown = rule.fields?.find((field) => !view.column(field));
  if (unknown !== undefined) throw new AppError("not_found", `The class ${view.path} has no column ${unknown}.`);
  return rule.fields && rule.fields.length > 0 ? [["fields", rule.fields.join(",")]] : [];
}
