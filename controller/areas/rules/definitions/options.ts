import { AppError, type ErrorCode } from "../../../../common/errors.ts";
import {
  RULE_CACHED_CLASSES_MAX,
  RULE_RETRY_INTERVAL_MS,
  RULE_RETRY_SPAN_MAX_MS,
  RULE_RETRY_TOTAL,
  RULE_RETRY_TOTAL_MAX,
} from "../../../../common/limits.ts";

/**
 * A rule is a text whose first comment lines are options: `--class=/ns/x`, also written `--class /x` or `--class: /x`,
 * with spaces allowed after `--`. The rest of the text is the script.
 */
export interface RuleText {
  /** Options in the order written; an option given twice is listed twice. */
  readonly options: readonly RuleOption[];
  /** Empty if the rule has options only. It begins with blank lines, so its line numbers are those of the rule text. */
  readonly script: string;
}

export type RuleLanguage = "lua" | "javascript";

/** The error about one option, with the place of its line. `details`: more about it. */
export function optionFault(
  { line }: Pick<RuleOption, "line">,
  complaint: string,
  { code = "syntax", ...details }: { readonly code?: ErrorCode; readonly unknown?: string } = {},
): AppError {
  return new AppError(code, `Line ${line}: ${complaint}`, { details: { ...details, line, column: 1 } });
}

/** Script that runs for each record. */
export interface RuleBody {
  readonly language: RuleLanguage;
  readonly script: string;
  /** `--ignore`: the body runs, but its rows are not stored. */
  readonly isIgnored: boolean;
}

export interface RuleOption {
  readonly name: string;
  readonly value: string;
  /** Line number, from 1. */
  readonly line: number;
}

/** Names of options. Other names are options if they begin with one of `FAMILIES`. */
const EXACT = new Set([
  "class",
  "language",
  "keyspace",
  "parser",
  "fields",
  "fields_type",
  "ignore",
  "mqltmpl",
  "mqltmpl_fields",
  "direct",
  "cache_classes",
  "forward",
  "retry",
  "retry_total",
  "retry_interval",
  "header",
  "separator",
  "quote",
  "escape",
  "null",
  "comment_sign",
  "time",
  "time_layout",
  "time_unit",
  "time_zone",
  "raw_bytes",
]);
/**
 * Options that are also ordinary words, with which comments of older rules may begin. They are options only as
 * `--name=…`, or `--header` alone.
 */
const WORDS = new Set(["header", "separator", "quote", "escape", "null", "time"]);
const PLAIN_FORM = /^\s*(?:\/\/\s*)?--(?:[a-z]+=|header\s*$)/i;
/** A comment line in Lua or JavaScript; not the block comment `--[[`. */
const OPTION_LINE = /^\s*(?:--(?!\[\[)|\/\/)/;
const LANGUAGES: Readonly<Record<string, RuleLanguage>> = { lua: "lua", javascript: "javascript", js: "javascript" };
const FAMILIES = ["var_", "pattern_"];
export const ALL_OPTIONS: readonly string[] = [...EXACT, ...FAMILIES];

export function readRuleText(text: string): RuleText {
  const options: RuleOption[] = [];
  const lines = text.split(/\r?\n/);
  let next = 0;
  for (; next < lines.length; next += 1) {
    const line = lines[next] ?? "";
    if (line.trim() === "") continue;
    if (!OPTION_LINE.test(line)) break;
    const option = readOption(line, next + 1);
    if (option) options.push(option);
  }
  return { options, script: scriptOf(lines, next) };
}

/** The body of a rule; `undefined` without one or with `--direct`. `AppError("invalid")` for an unknown language. */
export function bodyOf(rule: RuleText): RuleBody | undefined {
  const name = (single(rule, "language") ?? "lua").toLowerCase();
  const language = Object.hasOwn(LANGUAGES, name) ? LANGUAGES[name] : undefined;
  if (language === undefined) throw new AppError("invalid", `A rule is written in lua or javascript, not in ${name}.`);
  return rule.script === "" || isOn(rule, "direct")
    ? undefined
    : { language, script: rule.script, isIgnored: isOn(rule, "ignore") };
}

/** True if the option is given without a value, or with `true`, `1` or `yes`. */
export function isOn(rule: RuleText, name: string): boolean {
  return /^(true|1|yes)?$/i.test(single(rule, name) ?? "false");
}

/**
 * False only for `--raw_bytes=false`, `0` or `no`: then marked records have no raw bytes. `AppError("invalid")` for
 * other values.
 */
export function keepsRawBytes(rule: RuleText): boolean {
  const given = single(rule, "raw_bytes") ?? "";
  if (!/^(true|1|yes|false|0|no)?$/i.test(given))
    throw new AppError("invalid", `--raw_bytes is on or off, not ${given}.`);
  return given === "" || isOn(rule, "raw_bytes");
}

/** Value of an option that may be given once; `undefined` without it. `AppError("syntax")` if it is given twice. */
export function single(rule: RuleText, name: string): string | undefined {
  const found = rule.options.filter((option) => option.name === name);
  const second = found[1];
  if (second) throw new AppError("syntax", `[Parser] line ${second.line}: the option --${name} stands twice.`);
  return found[0]?.value;
}

/** Paths of `--cache_classes`; a trailing slash includes all subclasses. */
export function cachedClasses(rule: RuleText): readonly string[] {
  const paths = names(single(rule, "cache_classes"));
  const wrong = paths.find((path) => !CLASS_PATH.test(path));
  if (wrong !== undefined) throw new AppError("invalid", `--cache_classes names paths of classes, not ${wrong}.`);
  if (paths.length > RULE_CACHED_CLASSES_MAX)
    throw new AppError("too_large", `--cache_classes names more than ${RULE_CACHED_CLASSES_MAX} classes.`, {
      details: { limit: "RULE_CACHED_CLASSES_MAX" },
    });
  return paths;
}

/** How failed records are tried again. */
export interface RuleRetry {
  /**
   * True with `--retry`: every record on which the body fails is retried. Otherwise only the function `retry` asks for
   * it.
   */
  readonly onFailure: boolean;
  /** Maximum number of retries of a record. */
  readonly total: number;
  readonly intervalMs: number;
}

/** Reads `--retry`, `--retry_total` and `--retry_interval`. `AppError("invalid")` for wrong values. */
export function retryOf(rule: RuleText): RuleRetry {
  const on = single(rule, "retry");
  if (on !== undefined && !/^(true|1|yes|false|0|no)?$/i.test(on))
    throw new AppError("invalid", `--retry is on or off, not ${on}; --retry_total says how often.`);
  const times = single(rule, "retry_total");
  const total = times === undefined ? RULE_RETRY_TOTAL : Number(times);
  if (times === "" || !Number.isInteger(total) || total < 1 || total > RULE_RETRY_TOTAL_MAX)
    throw new AppError("invalid", `--retry_total is a number from 1 to ${RULE_RETRY_TOTAL_MAX}, not ${times}.`);
  const intervalMs = intervalOf(single(rule, "retry_interval"));
  if (total * intervalMs > RULE_RETRY_SPAN_MAX_MS)
    throw new AppError("invalid", `A record is tried again for at most ${RULE_RETRY_SPAN_MAX_MS / 86_400_000} days.`);
  return { onFailure: isOn(rule, "retry"), total, intervalMs };
}

function intervalOf(text: string | undefined): number {
  if (text === undefined) return RULE_RETRY_INTERVAL_MS;
  const [, count, unit = "m"] = /^(\d{1,6})\s*(?:([smh])[a-z]*)?$/i.exec(text) ?? [];
  const intervalMs = Number(count) * ({ s: 1_000, m: 60_000, h: 3_600_000 }[unit.toLowerCase()] ?? NaN);
  if (intervalMs > 0) return intervalMs;
  throw new AppError("invalid", `--retry_interval is a time such as 30s, 1 min or 2h, not ${text}.`);
}

const CLASS_PATH = /^(?:\/[\p{L}\p{N}_]+)+\/?$/u;

/** Splits at commas, trims the names, and leaves out empty ones. */
export function names(value: string | undefined): readonly string[] {
  return (value ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

export function writeRuleText(options: readonly (readonly [name: string, value: string])[]): string {
  return options.map(([name, value]) => `--${name}=${value}\n`).join("");
}

/** Reads an option line. `undefined` for a comment that is no known option. */
function readOption(line: string, number: number): RuleOption | undefined {
  const match = /^\s*(?:--|\/\/\s*(?:--)?)\s*([a-z_]\w*)\s*(?:[=:]\s*|\s+|$)(.*)$/i.exec(line);
  const name = match?.[1]?.toLowerCase();
  if (!match || !name || !isOption(name) || isComment(line, name)) return undefined;
  const isField = FAMILIES.some((family) => name.startsWith(family));
  return { name: isField ? keepCase(match[1] ?? name) : name, value: (match[2] ?? "").trim(), line: number };
}

/** True for a comment that only begins with the name of an option in `WORDS`. */
export function isComment(line: string, name: string): boolean {
  return WORDS.has(name) && !PLAIN_FORM.test(line);
}

export function isOption(name: string): boolean {
  return EXACT.has(name) || FAMILIES.some((family) => name.startsWith(family) && name.length > family.length);
}

function keepCase(name: string): string {
  const underscore = name.indexOf("_") + 1;
  return name.slice(0, underscore).toLowerCase() + name.slice(underscore);
}

function scriptOf(lines: readonly string[], from: number): string {
  const code = lines.slice(from).filter((line) => line.trim() !== "" && !OPTION_LINE.test(line));
  return code.length === 0 ? "" : "\n".repeat(from) + lines.slice(from).join("\n");
}
