import { Type, type TSchema } from "typebox";
import { AppError } from "../../../common/errors.ts";
import { hostFunction, type HostFunction, type HostObject } from "../objects.ts";

const TEXT = { name: "text", schema: Type.String() } as const;
const LAYOUT = {
  name: "layout",
  schema: Type.String({
    description:
      "As yyyy-MM-dd HH:mm:ss.SSS; also yy, MMM (Jan), EEE (Mon), h with a (AM), one letter for numbers without a leading zero (a day may have a blank before it), Z or XXX for a zone, and text in '…'",
  }),
} as const;
const SEPARATOR = {
  name: "separator",
  schema: Type.String({ description: "One character; a comma without it" }),
  optional: true,
} as const;

/** Functions available to Lua besides its own libraries (`libraries.ts`). They make no host calls. */
export const LUA_LIBRARY_OBJECTS: readonly HostObject[] = [
  library("strings", "Parts of texts", [
    inLua("split", {
      summary: "The parts between separators; without one, the characters",
      parameters: [TEXT, { name: "separator", schema: Type.String(), optional: true }],
      returns: "list of texts",
      example: 'log.info(strings.split("a,b,c", ",")[2])',
    }),
    inLua("replace", {
      summary: "The text with another one in the place of each it finds, of the first so many where a number is given",
      parameters: [
        TEXT,
        { name: "old", schema: Type.String() },
        { name: "new", schema: Type.String() },
        { name: "count", schema: Type.Integer(), optional: true },
      ],
      returns: "the text",
      example: 'log.info(strings.replace("a-b-c", "-", "+", 1))',
    }),
    inLua("trim", {
      summary: "The text without white space around it, or without the given characters",
      parameters: [TEXT, { name: "characters", schema: Type.String(), optional: true }],
      returns: "the text",
      example: 'log.info(strings.trim("--a--", "-"))',
    }),
    inLua("join", {
      summary: "The texts one after the other, with a separator between",
      parameters: [
        { name: "parts", schema: Type.Array(Type.String()) },
        { name: "separator", schema: Type.String(), optional: true },
      ],
      returns: "the text",
      example: 'log.info(strings.join({ "a", "b" }, "+"))',
    }),
    inLua("fields", {
      summary: "The parts between white space",
      parameters: [TEXT],
      returns: "list of texts",
      example: 'log.info(strings.fields(" a  b ")[2])',
    }),
  ]),
  library("json", "JSON", [
    inLua("parse", {
      summary: "What a text in JSON says; null is nothing",
      parameters: [TEXT],
      returns: "the value",
      example: "log.info(json.parse('{\"a\": [1, 2]}').a[2])",
    }),
    inLua("string", {
      summary: "A value as JSON; an empty table is {}",
      parameters: [{ name: "value", schema: Type.Unknown() }],
      returns: "the text",
      example: "log.info(json.string({ 1, true }))",
    }),
  ]),
  library("time", "Times as milliseconds since 1970, read and shown by layouts", [
    inLua("parse", {
      summary:
        "The time that a text names, in UTC where it names no zone; one that does not fit the layout is an error",
      parameters: [
        TEXT,
        LAYOUT,
        {
          name: "near",
          schema: Type.Number({
            description:
              "Without a year in the layout it is the year nearest to this time, without a date the day; January 1, 1970 without this",
          }),
          optional: true,
        },
      ],
      returns: "milliseconds since 1970",
      example: 'log.info(time.parse("2026-03-01 10:04:59.250", "yyyy-MM-dd HH:mm:ss.SSS"))',
    }),
    inLua("format", {
      summary: "A time as text, in UTC",
      parameters: [{ name: "ms", schema: Type.Number({ description: "Milliseconds since 1970" }) }, LAYOUT],
      returns: "the text",
      example: 'log.info(time.format(1772359499250, "EEE, d MMM yyyy HH:mm"))',
    }),
  ]),
  library("csv", "CSV", [
    inLua("parse", {
      summary: "The rows of a text; fields in quotes may have separators and lines in them, empty lines are left out",
      parameters: [TEXT, SEPARATOR],
      returns: "list of rows, each a list of texts",
      example: "log.info(csv.parse('a,\"b,c\"')[1][2])",
    }),
    inLua("string", {
      summary: "Rows as text, with quotes where they are needed",
      parameters: [
        {
          name: "rows",
          schema: Type.Array(Type.Unknown(), { description: "Lists of texts, numbers and booleans, or one such list" }),
        },
        SEPARATOR,
      ],
      returns: "the text, a line for each row",
      example: 'log.info(csv.string({ { "a", "b,c" }, { 1, true } }))',
    }),
  ]),
];

function library(name: string, summary: string, functions: readonly HostFunction[]): HostObject {
  return { name, summary, kinds: ["trigger", "rule"], language: "lua", isLocal: true, functions };
}

interface InLua {
  readonly summary: string;
  readonly parameters: readonly { readonly name: string; readonly schema: TSchema; readonly optional?: boolean }[];
  readonly returns: string;
  readonly example: string;
}

function inLua(name: string, described: InLua): HostFunction {
  return hostFunction({
    name,
    ...described,
    call: () => Promise.reject(new AppError("unsupported", `${name} is answered by Lua itself.`)),
  });
}
