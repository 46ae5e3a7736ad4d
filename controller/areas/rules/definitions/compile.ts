import { AppError } from "../../../../common/errors.ts";
import { withNearest } from "../../../../common/text/nearest.ts";
import { GROK_PATTERNS_PER_RULE_MAX, PARSE_THREAD_MIN_STEPS } from "../../../../common/limits.ts";
import type { Row, Value } from "../../../../common/value.ts";
import { csvOptions, CsvRows, hasHeader } from "../parsing/csv.ts";
import { compileGrok } from "../grok/grok.ts";
import { fieldsTaken, mappingOf, timeSource, type Mapping, type Source } from "./mapping.ts";
import { nestedPaths, NO_FIELD } from "./paths.ts";
import {
  bodyOf,
  cachedClasses,
  isOn,
  keepsRawBytes,
  names,
  optionFault,
  readRuleText,
  retryOf,
  single,
  type RuleText,
} from "./options.ts";
import {
  BITLOG_FIELDS,
  bitlogParser,
  csvParser,
  FIELD_TYPES,
  grokParser,
  jsonParser,
  textParser,
  type FieldType,
  type FieldsOrError,
  type Parser,
} from "../parsing/parsers.ts";
import { NO_SUPPLEMENTS, type Supplements } from "./supplements.ts";
import { templateOf } from "./template.ts";
import { ownTime, readTimes, requireRecords, timeColumns, timesOf } from "./times.ts";
import type { ParsedRecord, RawRecord, Rule, RuleTarget, RuleTimes } from "../types.ts";

/** A compiled rule text. */
export type CompiledRule = Pick<
  Rule,
  | "class"
  | "columns"
  | "timeColumns"
  | "times"
  | "body"
  | "forwardTo"
  | "parse"
  | "isCostly"
  | "paths"
  | "csv"
  | "withoutRawBytes"
>;

/**
 * Path of the class by `--class` or `--mqltmpl`; empty if only the body names classes. `AppError("syntax")` or
 * `AppError("invalid")` for an unusable text.
 */
export function ruleClass(text: string): string {
  const rule = readRuleText(text);
  const path = classOption(rule);
  if (path === undefined && bodyOf(rule)) return "";
  if (path === undefined) throw new AppError("invalid", NO_CLASS);
  return path;
}

function classOption(rule: RuleText): string | undefined {
  const path = single(rule, "class")?.replace(/\/+$/, "") || undefined;
  const template = templateOf(rule);
  if (template === undefined || path === undefined || path === template.class) return path ?? template?.class;
  throw optionFault(template, `--mqltmpl is for ${template.class}, --class for ${path}.`, { code: "invalid" });
}

/**
 * Checks a rule text without its class, which need not exist yet. A missing option is no error here, but later when the
 * rule is used.
 */
export function checkRuleText(text: string, supplements = NO_SUPPLEMENTS): void {
  const rule = readRuleText(text);
  classOption(rule);
  bodyOf(rule);
  cachedClasses(rule);
  retryOf(rule);
  timesOf(rule);
  keepsRawBytes(rule);
  // Placeholder for the columns of the class, for a rule that names no fields.
  const columns = ["text"];
  if (hasParser(rule)) parserOf(rule, { columns, csv: csvOf(rule, columns) }, supplements);
}

const NO_CLASS = "The rule has no option --class, so it is not known where its records go.";
const NO_PARSER = "The rule has no option --parser (text, json, csv, grok or bitlog).";
const NO_PATTERN = "The grok rule has no pattern: give --pattern_1=… or a grok expression in --fields.";

/** Message about an option that a rule still needs before it can be used; `undefined` if it has all. */
export function missingOption(rule: RuleText): string | undefined {
  // A body may name classes and read the raw record itself, so only a grok pattern can be missing.
  if (bodyOf(rule)) return isGrok(rule) && expressionsOf(rule).length === 0 ? NO_PATTERN : undefined;
  if (classOption(rule) === undefined) return NO_CLASS;
  if (!single(rule, "parser")) return NO_PARSER;
  return hasParser(rule) ? undefined : NO_PATTERN;
}

/**
 * Message if a csv or text rule has no field names: no `--fields`, and no columns of users in the class. It is an error
 * only when the rule is used, because the class may get columns until then.
 */
export function missingFields(rule: RuleText, { columns }: Pick<RuleTarget, "columns">): string | undefined {
  const kind = parserName(rule);
  if (kind === "csv" && hasHeader(rule)) return undefined;
  const isMissing = kind === "csv" || kind === "text" ? fieldsOf(rule, kind, namesOf(columns)).length === 0 : false;
  return isMissing ? noFields(kind) : undefined;
}

/** True if the rule has a parser and, for grok, at least one expression. */
function hasParser(rule: RuleText): boolean {
  return (single(rule, "parser") ?? "") !== "" && (!isGrok(rule) || expressionsOf(rule).length > 0);
}

function isGrok(rule: RuleText): boolean {
  return parserName(rule) === "grok";
}

function parserName(rule: RuleText): string {
  return (single(rule, "parser") ?? "").toLowerCase();
}

const PARSERS = ["text", "json", "csv", "grok", "bitlog"];

function unknownParser({ options }: RuleText, kind: string): AppError {
  const { line = 1 } = options.find(({ name }) => name === "parser") ?? {};
  const text = `There is no parser named ${kind}; there are text, json, csv, grok and bitlog.`;
  return withNearest(new AppError("invalid", text, { details: { unknown: kind, line, column: 1 } }), PARSERS);
}

/** Keys of the rules that `--forward` names. They get each raw record. */
export function forwardedTo(rule: RuleText): readonly string[] {
  return rule.options.filter(({ name }) => name === "forward").flatMap(({ value }) => names(value));
}

/** The grok expressions of a rule text; empty for a rule with another parser. */
export function grokExpressions(text: string): readonly string[] {
  const rule = readRuleText(text);
  return isGrok(rule) ? expressionsOf(rule) : [];
}

/** Class that a rule is compiled for, and the data that the rule uses besides its text. */
type CompileTarget = RuleTarget & { readonly supplements?: Supplements };

/** Compiles a rule for its class. */
export function compileRule(text: string, target: CompileTarget): CompiledRule {
  const { supplements = NO_SUPPLEMENTS } = target;
  const rule = readRuleText(text);
  const columns = namesOf(target.columns);
  const csv = csvOf(rule, columns);
  const parser = parserOf(rule, { columns, csv }, supplements);
  const mapping = mappingOf(rule, target, supplements.extension);
  const taken = fieldsTaken(rule, target);
  const patterns = isGrok(rule) ? expressionsOf(rule).length : 0;
  const ignored = isOn(rule, "ignore");
  const body = bodyOf(rule);
  const times = timesOf(rule);
  requireRecords(times, target);
  const way = { parser, mapping, times: timeWay(times, target), hasBody: body !== undefined };
  return {
    class: target.path,
    columns,
    timeColumns: way.times.columns,
    times,
    body,
    forwardTo: forwardedTo(rule),
    paths: nestedPaths(rule),
    csv,
    withoutRawBytes: !keepsRawBytes(rule),
    isCostly: (records) =>
      !(ignored && body === undefined) &&
      records.some(({ text: { length } }) => length * length * patterns >= PARSE_THREAD_MIN_STEPS),
    parse: (records, onUnused) =>
      ignored && body === undefined
        ? []
        : parseRecords(records, {
            ...way,
            parser: onUnused && !body ? watched(parser, taken, onUnused) : parser,
          }),
  };
}

function namesOf(columns: RuleTarget["columns"]): readonly string[] {
  return columns.map(({ name }) => name);
}

/**
 * How the rule reads csv; `undefined` for other parsers. The fields are named by `--fields`; without it by the heading
 * line (`--header`), or else by the class.
 */
function csvOf(rule: RuleText, columns: readonly string[]): CsvRows | undefined {
  if (parserName(rule) !== "csv") return undefined;
  const options = csvOptions(rule);
  const fields = fieldsOf(rule, "csv", options.hasHeader ? [] : columns);
  if (!options.hasHeader) required(fields[0], "csv");
  return new CsvRows(options, fields);
}

interface ParserFor {
  readonly columns: readonly string[];
  readonly csv: CsvRows | undefined;
}

function parserOf(rule: RuleText, { columns, csv }: ParserFor, { patterns }: Supplements): Parser {
  if (csv) return csvParser(csv, typesOf(rule));
  const kind = parserName(rule);
  const fields = fieldsOf(rule, kind, columns);
  const types = typesOf(rule);
  switch (kind) {
    case "text":
      return textParser(required(fields[0], "text"));
    case "json":
      return jsonParser();
    case "grok":
      return grokParser(
        expressions(rule).map((expression) => compileGrok(expression, patterns)),
        fields,
        { types, times: timesOf(rule) },
      );
    case "":
      if (bodyOf(rule)) return textParser(RAW_FIELD);
      throw new AppError("invalid", NO_PARSER);
    case "bitlog":
      if (types.length > 0) throw new AppError("invalid", "The fields of bitlog have their types: no --fields_type.");
      return bitlogParser(fields);
    default:
      throw unknownParser(rule, kind);
  }
}

/** The only column that every class has and that users do not define. */
const PLATFORM_COLUMN = "tags";

function fieldsOf(rule: RuleText, kind: string, columns: readonly string[]): readonly string[] {
  const value = single(rule, "fields");
  if (kind === "grok" && value?.includes("%{")) return [];
  const fields = names(value);
  if (kind === "bitlog") return fields.length > 0 ? fields : BITLOG_FIELDS;
  return fields.length > 0 || kind === "grok" ? fields : columns.filter((column) => column !== PLATFORM_COLUMN);
}

function typesOf(rule: RuleText): readonly FieldType[] {
  return names(single(rule, "fields_type")).map((name) => {
    const type = FIELD_TYPES.find((known) => known === name.toUpperCase());
    if (!type) throw new AppError("invalid", `--fields_type knows ${FIELD_TYPES.join(", ")}, not ${name}.`);
    return type;
  });
}

/** `--pattern_1`, `--pattern_2`, … in the order written; or the expression in `--fields` itself. */
function expressionsOf(rule: RuleText): readonly string[] {
  const patterns = rule.options.filter(({ name }) => name.startsWith("pattern_")).map(({ value }) => value);
  const inline = single(rule, "fields");
  return patterns.length > 0 ? patterns : inline?.includes("%{") ? [inline] : [];
}

function expressions(rule: RuleText): readonly string[] {
  const all = expressionsOf(rule);
  if (all.length === 0) throw new AppError("invalid", NO_PATTERN);
  if (all.length > GROK_PATTERNS_PER_RULE_MAX) {
    throw new AppError("too_large", `The rule has more than ${GROK_PATTERNS_PER_RULE_MAX} patterns.`);
  }
  return all;
}

function required(field: string | undefined, kind: string): string {
  if (field === undefined) throw new AppError("invalid", noFields(kind));
  return field;
}

function noFields(kind: string): string {
  return `A ${kind} rule needs --fields, or a class for which users defined columns.`;
}

/** Field of `OBJECT` with the raw text, for a body without a parser. */
const RAW_FIELD = "_raw";

interface ParseWay {
  readonly parser: Parser;
  readonly mapping: Mapping;
  readonly times: TimeWay;
  /** True if the rule has a body, which decides what happens to a record that fills no column. */
  readonly hasBody: boolean;
}

interface TimeWay {
  readonly of: RuleTimes;
  /** Columns of the class that hold times. */
  readonly columns: readonly string[];
  /** Source of the value that `--time` names; absent without that option. */
  readonly source: Source | undefined;
}

function timeWay(of: RuleTimes, { columns }: RuleTarget): TimeWay {
  return { of, columns: timeColumns(columns), source: of.field === undefined ? undefined : timeSource(of.field) };
}

function parseRecords(records: readonly RawRecord[], way: ParseWay): readonly ParsedRecord[] {
  const parsed: ParsedRecord[] = [];
  way
    .parser(
      records.map((record) => record.text),
      records,
    )
    .forEach((result, ordinal) => {
      const record = records[ordinal];
      if (record && !isEmpty(result)) parsed.push(mapped(result, { record, ordinal }, way));
    });
  return parsed;
}

/** Wraps the parser. The result reports each field that no column takes. */
function watched(parser: Parser, taken: ReadonlySet<string>, onUnused: (field: string) => void): Parser {
  return (texts, records) => {
    const results = parser(texts, records);
    for (const result of results) {
      if ("error" in result || result.fields === undefined) continue;
      for (const name of Object.keys(result.fields)) if (!taken.has(name)) onUnused(name);
    }
    return results;
  };
}

function isEmpty(result: FieldsOrError): boolean {
  return "fields" in result && result.fields === undefined;
}

interface Place {
  readonly record: RawRecord;
  readonly ordinal: number;
}

function mapped(
  result: FieldsOrError,
  { record, ordinal }: Place,
  { mapping, times, hasBody }: Omit<ParseWay, "parser">,
): ParsedRecord {
  if ("error" in result) return { ok: false, ordinal, error: result.error };
  const fields = result.fields ?? {};
  const values: Row = {};
  let hasValue = false;
  for (const [column, from] of mapping) {
    const value: Value | undefined = from(fields, record);
    if (value === undefined || value === null) continue;
    values[column] = value;
    hasValue = true;
  }
  const { of, columns, source } = times;
  const own = source && ownTime(source(fields, record), of, record);
  // The body may change the values, so they are checked after it.
  if (hasBody) return { ok: true, ordinal, values, fields, ...own };
  if (!hasValue) return { ok: false, ordinal, error: NO_FIELD };
  const fault = columns.length === 0 ? undefined : readTimes(values, columns, { times: of, record });
  if (fault !== undefined) return { ok: false, ordinal, error: fault };
  // The author is set later, in place.
  return own === undefined
    ? { ok: true, ordinal, values, by: undefined }
    : { ok: true, ordinal, values, by: undefined, ...own };
}
