import { Value } from "typebox/value";
import { ConfigValueSchema } from "../../../common/api/config-schema.ts";
import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { parseJson } from "../../../common/json.ts";
import { compilePattern, type Pattern } from "../../../common/regex/pattern.ts";

/** A valid schema. */
export interface CheckedSchema {
  readonly rules: ConfigValueSchema;
  readonly pattern: Pattern | undefined;
}

/**
 * Parses a schema. `AppError("invalid")` or `AppError("syntax")` if the text is not a schema; the error names the
 * member.
 */
export function parseSchema(text: string): CheckedSchema {
  const rules = parseJson(text);
  const unknown = Object.keys(rules ?? {}).find((member) => !Object.hasOwn(ConfigValueSchema.properties, member));
  if (unknown !== undefined) throw refused(unknown, "is not known");
  const [fault] = Value.Errors(ConfigValueSchema, rules);
  if (fault) throw refused(fault.instancePath.slice(1) || "form", fault.message);
  return checkedSchema(rules as ConfigValueSchema);
}

function checkedSchema(rules: ConfigValueSchema): CheckedSchema {
  const { type, minimum, maximum, minLength, maxLength, pattern, enum: values } = rules;
  const isNumeric = type === "integer" || type === "number";
  if (!isNumeric && (minimum ?? maximum) !== undefined) throw refused("minimum", `and maximum are not for ${type}`);
  if (type !== "string" && (minLength ?? maxLength) !== undefined)
    throw refused("minLength", `and maxLength are not for ${type}`);
  if ((minimum ?? -Infinity) > (maximum ?? Infinity)) throw refused("minimum", "is above its maximum");
  if ((minLength ?? 0) > (maxLength ?? Infinity)) throw refused("minLength", "is above its maxLength");
  const schema = { rules, pattern: pattern === undefined ? undefined : compiled(pattern) };
  const never = values?.find((value) => brokenRule(schema, value) !== undefined);
  if (never !== undefined) throw refused("enum", `has a value that its ${brokenRule(schema, never)} refuses`);
  return schema;
}

function compiled(source: string): Pattern {
  try {
    return compilePattern(source);
  } catch (error) {
    if (!isAppError(error)) throw error;
    throw new AppError(error.code, `The schema's pattern is refused: ${errorText(error)}`, { cause: error });
  }
}

function refused(member: string, why: string): AppError {
  return new AppError("invalid", `The schema's ${member} ${why}.`, { details: { member } });
}

/** Numbers in decimal notation, with an optional exponent. `Number()` accepts more forms, such as blanks or `0x10`. */
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const INTEGER = /^-?(0|[1-9]\d*)$/;

type Rule = keyof ConfigValueSchema;
type Holds = (schema: CheckedSchema, value: string) => boolean;

/** The rules in the order in which they are checked and reported. A rule that the schema does not have is fulfilled. */
const HOLDS: readonly (readonly [rule: Rule, holds: Holds])[] = [
  ["type", ({ rules }, value) => isOfType(rules.type, value)],
  ["minimum", ({ rules: { minimum = -Infinity } }, value) => !(Number(value) < minimum)],
  ["maximum", ({ rules: { maximum = Infinity } }, value) => !(Number(value) > maximum)],
  ["minLength", ({ rules: { minLength = 0 } }, value) => lengthOf(value) >= minLength],
  ["maxLength", ({ rules: { maxLength = Infinity } }, value) => lengthOf(value) <= maxLength],
  ["pattern", ({ pattern }, value) => pattern?.test(value) ?? true],
  ["enum", ({ rules }, value) => rules.enum?.includes(value) ?? true],
];

/** The first rule that the value breaks. */
export function brokenRule(schema: CheckedSchema, value: string): Rule | undefined {
  return HOLDS.find(([, holds]) => !holds(schema, value))?.[0];
}

/** Length in code points. */
function lengthOf(text: string): number {
  let length = 0;
  for (let at = 0; at < text.length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) length += 1;
  return length;
}

function isOfType(type: ConfigValueSchema["type"], value: string): boolean {
  switch (type) {
    case "integer":
      return INTEGER.test(value) && Number.isSafeInteger(Number(value));
    case "number":
      return NUMBER.test(value) && Number.isFinite(Number(value));
    case "boolean":
      return value === "true" || value === "false";
    case "json":
      return isJson(value);
    default:
      return true;
  }
}

function isJson(text: string): boolean {
  try {
    parseJson(text);
    return true;
  } catch (error) {
    if (isAppError(error)) return false;
    throw error;
  }
}
