import type { TSchema } from "typebox";

export type Json = Readonly<Record<string, unknown>>;

export const TEXT: Json = { type: "string" };

/**
 * A schema in the form that generators of clients know: a record becomes `additionalProperties`, and a choice of texts
 * becomes an `enum`. `documented` of a schema is added to it, so the document may be narrower than the check.
 */
export function documented(schema: TSchema): Json {
  return rewritten(schema) as Json;
}

/** As `documented`, for a member of a request: a number beyond 2^53 arrives as text, and is refused as a number. */
export function documentedInput(schema: TSchema): Json {
  return bounded(documented(schema)) as Json;
}

function bounded(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(bounded);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [
    name,
    AS_THEY_ARE.has(name) ? member : bounded(member),
  ]);
  const { type } = value as Json;
  const isNumber = type === "integer" || type === "number";
  return {
    ...(isNumber && { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }),
    ...Object.fromEntries(members),
  } as Json;
}

function rewritten(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(rewritten);
  if (typeof value !== "object" || value === null) return value;
  const { patternProperties, anyOf, documented: added, ...rest } = value as Json;
  const others = Object.fromEntries(
    Object.entries(rest).map(([name, member]) => [name, AS_THEY_ARE.has(name) ? member : rewritten(member)]),
  );
  const choice = choiceOf(anyOf as Choice | undefined);
  return {
    ...others,
    ...recordOf(patternProperties as Json | undefined),
    ...choice,
    ...constraints((added ?? {}) as Json),
  };
}

/**
 * Constraints beside a schema. A choice of them is put into `allOf`: generators take `anyOf` of an object for a choice of
 * types, which would have none of its members.
 */
export function constraints({ anyOf, ...others }: Json): Json {
  return { ...others, ...(anyOf !== undefined && { allOf: [{ anyOf }] }) };
}

/** Keywords whose content is no schema. */
const AS_THEY_ARE = new Set(["examples", "default", "const", "enum", "required"]);

function recordOf(patterns: Json | undefined): Json {
  if (patterns === undefined) return {};
  const { "^.*$": any, ...others } = patterns;
  return {
    ...(any !== undefined && { additionalProperties: rewritten(any) }),
    ...(Object.keys(others).length > 0 && { patternProperties: rewritten(others) }),
  };
}

type Choice = readonly { readonly const?: unknown }[];

function choiceOf(variants: Choice | undefined): Json {
  if (variants === undefined) return {};
  const texts = variants.map((variant) => variant.const);
  if (texts.every((text) => typeof text === "string")) return { type: "string", enum: texts };
  return { anyOf: rewritten(variants) };
}

/** True if forms and queries send the value as JSON text: it is neither a text, number or flag, nor a list of these. */
export function isSentAsJson(schema: TSchema): boolean {
  const { type, anyOf, items } = schema as {
    readonly type?: string;
    readonly anyOf?: readonly TSchema[];
    readonly items?: TSchema;
  };
  if (anyOf !== undefined) return anyOf.some(isSentAsJson);
  if (type === "array") return items === undefined || isSentAsJson(items);
  return type === undefined || type === "object";
}
