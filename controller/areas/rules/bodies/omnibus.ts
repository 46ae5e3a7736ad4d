import { Type } from "typebox";
import { AppError } from "../../../../common/errors.ts";
import { hostFunction, type HostFunction, type HostObject } from "../../../scripting/index.ts";

const TEXT = { name: "text", schema: Type.String() } as const;
const COUNTED = "one character is one unit of UTF-16 in JavaScript, one byte in Lua";

/** Examples by function. Each runs in Lua and in JavaScript. */
const EXAMPLES: Readonly<Record<string, string>> = {
  length: 'setvar("n", omnibus.length("abc"))',
  lower: 'setvar("note", omnibus.lower("WEB-1"))',
  upper: 'setvar("note", omnibus.upper("web-1"))',
  trim: 'setvar("note", omnibus.trim("  a b  "))',
  ltrim: 'setvar("note", omnibus.ltrim("  a b  "))',
  rtrim: 'setvar("note", omnibus.rtrim("  a b  "))',
  substr: 'setvar("note", omnibus.substr("abcde", 2, 3))',
  split: 'setvar("note", omnibus.split("a,b,c", ",")[1])',
  replace: 'setvar("note", omnibus.replace("a-b-c", "-", "+"))',
  match: 'setvar("note", omnibus.match(getvar("name"), "a"))',
  nmatch: 'setvar("note", omnibus.nmatch("/var/log/a", "/var/"))',
  contains: 'setvar("note", omnibus.contains("an error", "error"))',
  extract: 'setvar("note", omnibus.extract("user=ann", "=(.*)"))',
  int: 'setvar("n", omnibus.int("7.9"))',
  real: 'setvar("note", omnibus.real("7.5"))',
};

/** Host object `omnibus`: text functions that the frame defines (`frames.ts`). They are the same in both languages. */
export const OMNIBUS_HOST_OBJECT: HostObject = {
  name: "omnibus",
  summary: "Functions on texts",
  kinds: ["rule"],
  isLocal: true,
  functions: [
    declared("length", `How many characters a text has; ${COUNTED}`, [TEXT], "number"),
    declared("lower", "The text in small letters; in Lua only a to z", [TEXT], "the text"),
    declared("upper", "The text in capital letters; in Lua only a to z", [TEXT], "the text"),
    declared("trim", "The text without white space around it", [TEXT], "the text"),
    declared("ltrim", "The text without white space before it", [TEXT], "the text"),
    declared("rtrim", "The text without white space behind it", [TEXT], "the text"),
    declared(
      "substr",
      `So many characters from a place, the first being 1, or all from there; ${COUNTED}`,
      [
        TEXT,
        { name: "from", schema: Type.Integer() },
        { name: "count", schema: Type.Integer({ minimum: 0 }), optional: true },
      ],
      "the text",
    ),
    declared(
      "split",
      "The parts between separators",
      [TEXT, { name: "separator", schema: Type.String() }],
      "list of texts, the first of which is [1] in Lua, [0] in JavaScript",
    ),
    declared(
      "replace",
      "The text with another one in the place of each it finds",
      [TEXT, { name: "old", schema: Type.String() }, { name: "new", schema: Type.String() }],
      "the text",
    ),
    declared("match", "Whether two texts are the same", [TEXT, { name: "other", schema: Type.String() }], "boolean"),
    declared(
      "nmatch",
      "Whether a text begins with another one",
      [TEXT, { name: "begin", schema: Type.String() }],
      "boolean",
    ),
    declared(
      "contains",
      "Whether another text stands in a text",
      [TEXT, { name: "part", schema: Type.String() }],
      "boolean",
    ),
    declared(
      "extract",
      "What a pattern of the language captures first; what it matches where it captures nothing",
      [TEXT, { name: "pattern", schema: Type.String() }],
      "the text, nothing where the pattern does not match",
    ),
    declared("int", "The whole number before the point", [TEXT], "number, nothing for what is none"),
    declared("real", "The number that a text says", [TEXT], "number, nothing for what is none"),
  ],
};

function declared(
  name: string,
  summary: string,
  parameters: HostFunction["parameters"],
  returns: string,
): HostFunction {
  return hostFunction({
    name,
    summary,
    parameters,
    returns,
    example: EXAMPLES[name] ?? "",
    call: () => Promise.reject(new AppError("unsupported", `omnibus.${name} is answered by the text itself.`)),
  });
}
