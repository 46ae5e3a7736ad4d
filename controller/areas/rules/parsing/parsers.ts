import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import { GROK_STEPS_MAX } from "../../../../common/limits.ts";
import { numberOf } from "../../../../common/numbers.ts";
import { parseJson } from "../../../../common/json.ts";
import type { Value } from "../../../../common/value.ts";
import { setMember } from "../../../../common/members.ts";
import { counted } from "../../../../common/text/counted.ts";
import type { CsvRows } from "./csv.ts";
import type { Grok } from "../grok/grok.ts";
import { timeText } from "../definitions/times.ts";
import type { RawRecord, RuleTimes } from "../types.ts";

/** Values by the field names of the parser. `undefined`: the text makes no record. */
export type Fields = Readonly<Record<string, Value>> | undefined;
export type FieldsOrError = { readonly fields: Fields } | { readonly error: string };

/**
 * Parses raw texts. The result has one element per text, in the same order. `records[i]` is the record of `texts[i]`.
 */
export type Parser = (
  texts: readonly string[],
  records: readonly Pick<RawRecord, "host" | "source" | "timeMs" | "zone" | "heading">[],
) => readonly FieldsOrError[];

export const FIELD_TYPES = ["INT", "FLOAT", "BOOL", "VAR"] as const;
export type FieldType = (typeof FIELD_TYPES)[number];

/** Puts the whole text into one field. */
export function textParser(field: string): Parser {
  return each((text) => ({ [field]: text }));
}

export function jsonParser(): Parser {
  return each((text) => {
    const value = parseJson(text);
    if (typeof value !== "object" || value === null || Array.isArray(value))
      throw new AppError("invalid", "It is no JSON object.");
    return value as Record<string, Value>;
  });
}

/**
 * Assigns columns to fields in their order. Too many columns are an error; missing columns at the end are left out.
 * Heading lines are left out anywhere.
 */
export function csvParser(rows: CsvRows, types: readonly FieldType[]): Parser {
  const namesOf = headings(rows);
  const parse: ParseOne = (text, record) => {
    // A comment needs no heading line and may be before it.
    if (rows.isComment(text)) return undefined;
    const names = namesOf(record?.heading);
    if (rows.isLeftOut(text, names)) return undefined;
    const { columns, error } = rows.columns(text);
    if (columns === undefined) throw new AppError("invalid", error ?? "");
    if (columns.length > names.length) throw tooMany(columns.length, names.length, rows);
    const given = columns.map((column, at): readonly [string, string | undefined] => [names[at] ?? "", column]);
    return typed(given.filter(isNamed), names, types);
  };
  return (texts, records) => texts.map((text, at) => attempt(parse, text, records[at]));
}

function tooMany(columns: number, names: number, rows: CsvRows): AppError {
  const named = rows.names.length > 0 ? "the rule" : "the heading line";
  return new AppError("invalid", `It has ${counted(columns, "column")} where ${named} names ${names}.`);
}

/** True for a value in a column with a name, unless the value means "no value". */
function isNamed(entry: readonly [string, string | undefined]): entry is readonly [string, string] {
  return entry[0] !== "" && entry[1] !== undefined;
}

/**
 * Returns a function from a heading line to the names of its fields. It caches the names, or the error, of the last
 * heading line.
 */
function headings(rows: CsvRows): (heading: string | undefined) => readonly string[] {
  let known: { readonly heading: string; readonly names: readonly string[] | AppError } | undefined;
  return (heading) => {
    if (rows.names.length > 0) return rows.names;
    if (heading === undefined) throw new AppError("invalid", rows.options.isW3c ? NO_W3C_HEADING : NO_HEADING);
    if (known?.heading !== heading) known = { heading, names: namesOrError(rows, heading) };
    if (known.names instanceof AppError) throw known.names;
    return known.names;
  };
}

function namesOrError(rows: CsvRows, heading: string): readonly string[] | AppError {
  try {
    return rows.headingNames(heading);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

const NO_HEADING =
  "It came without the heading line of its file, and the rule has no --fields: name the fields by --fields, or the heading line by the attribute heading of the log policy (agents of former versions send none).";
const NO_W3C_HEADING =
  "It came without the line #Fields: of its file: none stands before it, or its agent is of a former version, which sends none.";

export const BITLOG_FIELDS = ["id", "file", "log"];

/** Makes three fields: `host:path`, which is the same for all records of a file; the path; a list of the lines. */
export function bitlogParser(fields: readonly string[]): Parser {
  const [id = "", file = "", log = ""] = fields;
  if (fields.length !== BITLOG_FIELDS.length || new Set(fields).size !== fields.length)
    throw new AppError("invalid", "bitlog has three fields: an id, the file and its lines.");
  return (texts, records) =>
    texts.map((text, at) => {
      if (text.trim() === "") return { fields: undefined };
      const { host = "", source = "" } = records[at] ?? {};
      return { fields: { [id]: `${host}:${source}`, [file]: source, [log]: text.split(/\r?\n/) } };
    });
}

/** Uses the first grok expression that matches the text. */
export function grokParser(
  groks: readonly Grok[],
  fields: readonly string[],
  { types, times }: { readonly types: readonly FieldType[]; readonly times: RuleTimes },
): Parser {
  const readsTimes = groks.some((grok) => grok.readsTimes);
  return each((text, record) => {
    let steps = 0;
    const readTime = readsTimes && record ? (time: string) => timeText(time, times, record) : undefined;
    for (const grok of groks) {
      steps += grok.steps(text);
      if (steps > GROK_STEPS_MAX) throw tooLong(text);
      const match = grok.match(text, readTime);
      if (match) return types.length === 0 ? match : typed(Object.entries(match), fields, types);
    }
    throw new AppError("invalid", "No pattern of the rule matches it.");
  });
}

function tooLong(text: string): AppError {
  return new AppError("too_large", `It has ${text.length} characters, too many to try all patterns of the rule.`, {
    details: { limit: "GROK_STEPS_MAX" },
  });
}

type ParseOne = (text: string, record: Parameters<Parser>[1][number] | undefined) => Fields;

function each(parse: ParseOne): Parser {
  return (texts, records) =>
    texts.map((text, at) => (text.trim() === "" ? { fields: undefined } : attempt(parse, text, records[at])));
}

function attempt(parse: ParseOne, text: string, record: Parameters<ParseOne>[1]): FieldsOrError {
  try {
    return { fields: parse(text, record) };
  } catch (error) {
    if (isAppError(error) || error instanceof SyntaxError) return { error: errorText(error) };
    throw error;
  }
}

function typed(
  entries: readonly (readonly [string, Value])[],
  fields: readonly string[],
  types: readonly FieldType[],
): Fields {
  const result: Record<string, Value> = {};
  // If a name occurs twice, the type at its first place applies.
  const typeOf = new Map(types.map((type, at) => [fields[at], type] as const).toReversed());
  for (const [field, value] of entries) {
    const type = typeOf.get(field) ?? "VAR";
    // An empty column is no value, unless it is text.
    if (value === "" && type !== "VAR") continue;
    setMember(result, field, typeof value === "string" ? convert(field, value, type) : value);
  }
  return result;
}

function convert(field: string, text: string, type: FieldType): Value {
  switch (type) {
    case "VAR":
      return text;
    case "BOOL":
      if (/^(true|1)$/i.test(text)) return true;
      if (/^(false|0)$/i.test(text)) return false;
      break;
    case "INT":
      if (/^\s*[+-]?\d+\s*$/.test(text)) return numberOf(text.trim());
      break;
    case "FLOAT":
      if (text.trim() !== "" && Number.isFinite(Number(text))) return numberOf(text.trim());
      break;
  }
  throw new AppError("invalid", `The field ${field} is no ${type}: ${JSON.stringify(text.slice(0, 100))}.`);
}
