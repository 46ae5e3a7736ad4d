import Papa from "papaparse";
import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { GROK_STEPS_MAX } from "../../../common/limits.ts";
import { numberOf } from "../../../common/numbers.ts";
import { parseJson } from "../../../common/json.ts";
import type { Value } from "../../../common/value.ts";
import type { Grok } from "./grok.ts";
import { timeText } from "./times.ts";
import type { RawRecord, RuleTimes } from "./types.ts";

/** What a raw text says, by the parser's own field names. `undefined`: nothing to keep. */
export type Fields = Readonly<Record<string, Value>> | undefined;
export type FieldsOrError = { readonly fields: Fields } | { readonly error: string };

/** From raw texts to fields, one answer per text, in their order. `records` are those the texts are of. */
export type Parser = (
  texts: readonly string[],
  records: readonly Pick<RawRecord, "host" | "source" | "timeMs" | "zone">[],
) => readonly FieldsOrError[];

export const FIELD_TYPES = ["INT", "FLOAT", "BOOL", "VAR"] as const;
export type FieldType = (typeof FIELD_TYPES)[number];

/** The whole line into one field. */
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

/** The columns in the order of `fields`; surplus columns are an error, missing ones at the end are left out. */
export function csvParser(fields: readonly string[], types: readonly FieldType[]): Parser {
  const toFields = (columns: readonly string[]): Fields => {
    if (columns.length > fields.length) {
      throw new AppError("invalid", `It has ${columns.length} columns where the rule names ${fields.length}.`);
    }
    return typed(
      fields.slice(0, columns.length).map((field, index) => [field, columns[index] ?? ""]),
      fields,
      types,
    );
  };
  return (texts) => csvRows(texts).map((row) => ("columns" in row ? attempt(() => toFields(row.columns)) : row));
}

export const BITLOG_FIELDS = ["id", "file", "log"];

/** Three fields: host and path as one text, which is the same for all records of a file; the path; a list of lines. */
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

/** The first grok that matches a line gives its fields. */
export function grokParser(
  groks: readonly Grok[],
  fields: readonly string[],
  { types, times }: { readonly types: readonly FieldType[]; readonly times: RuleTimes },
): Parser {
  return each((text, record) => {
    let steps = 0;
    for (const grok of groks) {
      steps += grok.steps(text);
      if (steps > GROK_STEPS_MAX) throw tooLong(text);
      const match = grok.match(text, record && ((time) => timeText(time, times, record)));
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

function each(parse: (text: string, record: Parameters<Parser>[1][number] | undefined) => Fields): Parser {
  return (texts, records) =>
    texts.map((text, at) => (text.trim() === "" ? { fields: undefined } : attempt(() => parse(text, records[at]))));
}

function attempt(parse: () => Fields): FieldsOrError {
  try {
    return { fields: parse() };
  } catch (error) {
    if (isAppError(error) || error instanceof SyntaxError) return { error: errorText(error) };
    throw error;
  }
}

type CsvRow = { readonly columns: readonly string[] } | { readonly error: string } | { readonly fields: undefined };

/** All texts in one go when each is one line, which is many times faster; else one by one. */
function csvRows(texts: readonly string[]): readonly CsvRow[] {
  if (texts.every((text) => text !== "" && !/[\r\n"]/.test(text))) {
    const rows = Papa.parse<string[]>(texts.join("\n"), { delimiter: ",", newline: "\n" }).data;
    if (rows.length === texts.length) return rows.map((columns) => ({ columns }));
  }
  return texts.map(csvRow);
}

function csvRow(text: string): CsvRow {
  if (text.trim() === "") return { fields: undefined };
  const { data, errors } = Papa.parse<string[]>(text, { delimiter: "," });
  const fault = errors[0];
  if (fault) return { error: `${fault.message}.` };
  if (data.length !== 1) return { error: "It has more than one line outside quotes." };
  return { columns: data[0] ?? [] };
}

function typed(
  entries: readonly (readonly [string, Value])[],
  fields: readonly string[],
  types: readonly FieldType[],
): Fields {
  const result: Record<string, Value> = {};
  for (const [field, value] of entries) {
    const type = types[fields.indexOf(field)] ?? "VAR";
    // An empty column says nothing; only text can be empty.
    if (value === "" && type !== "VAR") continue;
    result[field] = typeof value === "string" ? convert(field, value, type) : value;
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
