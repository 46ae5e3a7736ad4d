/** The schemas of the OpenAPI document as types of TypeScript, with what a value may be as doc comments. */

export interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
  readonly default?: unknown;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
}

export interface Form {
  /** Spaces before the lines of the type, except for the first. */
  readonly indent: string;
  /** True for what a client sends: lists may be read-only, and files are uploads. */
  readonly isSent: boolean;
}

/** A member of an object type. */
export interface Member {
  readonly name: string;
  readonly type: string;
  readonly isOptional: boolean;
  readonly doc: readonly string[];
}

export function typeOf(schema: Schema, form: Form): string {
  if (schema.anyOf?.some(isType)) return union(schema.anyOf.map((one) => typeOf(one, form)));
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return union(schema.enum.map((one) => JSON.stringify(one)));
  switch (schema.type) {
    case "string":
      return schema.format === "binary" && form.isSent ? "Upload" : "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
    case "null":
      return schema.type;
    case "array":
      return listOf(schema.items ?? {}, form);
    case "object":
      return objectOf(schema, form);
    default:
      return "unknown";
  }
}

/** False for an alternative that only says which members are needed. */
function isType(schema: Schema): boolean {
  return schema.type !== undefined || "const" in schema || schema.anyOf !== undefined;
}

function union(types: readonly string[]): string {
  return [...new Set(types)].join(" | ");
}

function listOf(items: Schema, form: Form): string {
  const item = typeOf(items, form);
  const list = isCompound(items) ? `(${item})[]` : `${item}[]`;
  return form.isSent ? `readonly ${list}` : list;
}

/** True if the type of a schema is a union or an intersection. */
function isCompound({ anyOf, enum: choices, properties, additionalProperties }: Schema): boolean {
  const hasOthers = properties !== undefined && additionalProperties !== undefined && additionalProperties !== false;
  return anyOf?.some(isType) === true || choices !== undefined || hasOthers;
}

function objectOf({ properties, additionalProperties, required = [] }: Schema, form: Form): string {
  const members = Object.entries(properties ?? {}).map(([name, schema]) =>
    memberOf(name, schema, { form: deeper(form), isOptional: !required.includes(name) }),
  );
  const others =
    additionalProperties === undefined || additionalProperties === false
      ? undefined
      : `Record<string, ${typeOf(additionalProperties === true ? {} : additionalProperties, form)}>`;
  if (members.length === 0) return others ?? "Record<string, unknown>";
  const named = objectText(members, form.indent);
  return others === undefined ? named : `${named} & Record<string, unknown>`;
}

export function deeper(form: Form): Form {
  return { ...form, indent: `${form.indent}  ` };
}

export function memberOf(
  name: string,
  schema: Schema,
  { form, isOptional }: { readonly form: Form; readonly isOptional: boolean },
): Member {
  return { name, type: typeOf(schema, form), isOptional, doc: docOf(schema) };
}

/** An object type; its lines are indented by `indent`, and those of its members by two spaces more. */
export function objectText(members: readonly Member[], indent: string): string {
  const lines = members.flatMap(({ name, type, isOptional, doc }) => [
    ...comment(doc, `${indent}  `),
    `${indent}  ${keyOf(name)}${isOptional ? "?" : ""}: ${type};`,
  ]);
  return ["{", ...lines, `${indent}}`].join("\n");
}

export function keyOf(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

/** A doc comment of these lines; none without lines. */
export function comment(doc: readonly string[], indent: string): readonly string[] {
  const lines = doc.map((line) => line.replaceAll("*/", "*\\/"));
  const [only, second] = lines;
  if (only === undefined) return [];
  if (second === undefined) return [`${indent}/** ${only} */`];
  return [`${indent}/**`, ...lines.map((line) => `${indent} *${line === "" ? "" : ` ${line}`}`), `${indent} */`];
}

/** The description, then the bounds, then the default. */
export function docOf(schema: Schema): readonly string[] {
  const { description, default: otherwise } = schema;
  const text = [sentence(description ?? ""), ...boundsOf(schema)].filter((part) => part !== "").join(" ");
  return [
    ...(text === "" ? [] : [text]),
    ...(otherwise === undefined ? [] : [`@default ${JSON.stringify(otherwise)}`]),
  ];
}

function sentence(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line === "" || /[.!?]$/.test(line) ? line : `${line}.`;
}

function boundsOf(schema: Schema): readonly string[] {
  const { minLength, maxLength, minimum, maximum, minItems, maxItems } = schema;
  return [
    rangeOf(minLength, maxLength, "character"),
    rangeOf(ownBound(minimum), ownBound(maximum), ""),
    rangeOf(minItems, maxItems, "item"),
  ].filter((text) => text !== "");
}

/** A bound of the member itself; `undefined` for that of all numbers of requests. */
function ownBound(bound: number | undefined): number | undefined {
  return bound !== undefined && Math.abs(bound) === Number.MAX_SAFE_INTEGER ? undefined : bound;
}

function rangeOf(least: number | undefined, most: number | undefined, unit: string): string {
  const end = unit === "" ? "." : ` ${unit}${(most ?? least) === 1 ? "" : "s"}.`;
  if (least !== undefined && most !== undefined) return `${least} to ${most}${end}`;
  if (most !== undefined) return `At most ${most}${end}`;
  return least === undefined ? "" : `At least ${least}${end}`;
}
