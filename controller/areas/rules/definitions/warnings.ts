import { suggestion } from "../../../../common/text/nearest.ts";
import { missingOption } from "./compile.ts";
import { CSV_OPTIONS } from "../parsing/csv.ts";
import { ALL_OPTIONS, bodyOf, isComment, isOption, readRuleText, type RuleText, single } from "./options.ts";

/** Options that have an effect only in a rule with a body. */
const WITHOUT_EFFECT = new Set(["cache_classes", "retry", "retry_total", "retry_interval"]);

const OF_CSV: ReadonlySet<string> = new Set(CSV_OPTIONS);

/**
 * A comment that looks like an option: a name directly after `--`, followed by `=` or `:`, or a first word followed by
 * `=`. Comments in prose have neither.
 */
const LIKE_OPTION = /^\s*(?:--|\/\/\s*--)(?:([a-z_]\w*)\s*[=:]|\s+([a-z_]\w*)\s*=)/i;

/** A comment of exactly one word and one value, without `=`. Prose mostly has more words. */
const WORD_AND_VALUE = /^\s*(?:--|\/\/\s*--)([a-z]+)\s+\S+\s*$/i;

/** Warnings about options without effect, and about options that the rule still needs. */
export function ruleWarnings(text: string): readonly string[] {
  const rule = readRuleText(text);
  const missing = missingOption(rule);
  const idle = rule.options
    .filter(({ name }) => WITHOUT_EFFECT.has(name) && bodyOf(rule) === undefined)
    .map(({ name, line }) => `Line ${line}: --${name} has no effect: the rule has no body.`);
  return [
    ...(missing === undefined ? [] : [untilIt(missing)]),
    ...idle,
    ...optionsOfCsv(rule),
    ...unknownOptions(text),
  ];
}

export function untilIt(missing: string): string {
  return `${missing} Until it has, its records are errors.`;
}

function optionsOfCsv(rule: RuleText): readonly string[] {
  if (single(rule, "parser")?.toLowerCase() === "csv") return [];
  return rule.options
    .filter(({ name }) => OF_CSV.has(name))
    .map(({ name, line }) => `Line ${line}: --${name} has no effect: the parser is not csv.`);
}

function unknownOptions(text: string): readonly string[] {
  const [head = ""] = [/^\n*/.exec(readRuleText(text).script)?.[0]];
  const lines = text.split(/\r?\n/);
  // Comments inside the body are not checked.
  return lines.slice(0, head === "" ? lines.length : head.length).flatMap((line, at) => {
    const match = LIKE_OPTION.exec(line);
    const name = match?.[1] ?? match?.[2];
    const known = (name ?? WORD_AND_VALUE.exec(line)?.[1])?.toLowerCase();
    if (known === undefined) return [];
    if (isOption(known) && isComment(line, known))
      return [`Line ${at + 1}: --${known} is an option only as --${known}=…, and was ignored.`];
    if (name === undefined || isOption(known)) return [];
    return [`Line ${at + 1}: --${name} is no option and was ignored${suggestion(name, ALL_OPTIONS, "--")}`];
  });
}
