import type { TSchema } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { isLargeJson } from "../../../common/json-decoder.ts";
import { HTTP_TURN_LIST_MAX_ITEMS } from "../../../common/limits.ts";
import { conforms, ITEMS_PER_LOOK, schemaOfMember, takesAnyMembers, validatorOf, type Slicing } from "./coerce.ts";
import type { Shape } from "./shape.ts";

export type Problem = ReturnType<Validator["Errors"]>[number];

/** True if checking the input may take long. */
export function hasLargeMember(input: Readonly<Record<string, unknown>>): boolean {
  for (const name in input) if (isLarge(input[name])) return true;
  return false;
}

/**
 * Faults of an input against its schema; empty if there are none. Long lists and large objects are checked in slices,
 * and only their first faulty item or member is reported: finding all would take much longer.
 */
export async function problemsInSlices(
  schema: TSchema,
  input: Readonly<Record<string, unknown>>,
  slices: Slicing,
): Promise<readonly Problem[]> {
  const { properties = {} } = schema as Shape;
  const large = Object.keys(input).filter((name) => isLarge(input[name]) && Object.hasOwn(properties, name));
  for (const name of large) {
    const problems = await problemsOf(properties[name] ?? {}, { value: input[name], path: `/${name}` }, slices);
    if (problems.length > 0) return problems;
  }
  const validator = large.length === 0 ? validatorOf(schema) : without(schema, large);
  const rest = { ...input };
  for (const name of large) delete rest[name];
  return validator.Check(rest) ? [] : validator.Errors(rest);
}

interface Checked {
  readonly value: unknown;
  readonly path: string;
}

async function problemsOf(schema: TSchema, { value, path }: Checked, slices: Slicing): Promise<readonly Problem[]> {
  if (!isLarge(value)) return within(path, conforms(schema, value) ? [] : validatorOf(schema).Errors(value));
  const { anyOf, items } = schema as Shape & { readonly items?: TSchema };
  if (anyOf !== undefined) return problemsOfUnion(anyOf, { value, path }, slices);
  const bare = bareOf(schema);
  if (!bare.Check(value)) return within(path, bare.Errors(value));
  if (Array.isArray(value)) return items === undefined ? [] : problemsOfItems(items, { value, path }, slices);
  return takesAnyMembers(schema as Shape) ? [] : problemsOfMembers(schema, { value, path }, slices);
}

/** The faults against the last variant, if no variant fits. */
async function problemsOfUnion(
  variants: readonly TSchema[],
  checked: Checked,
  slices: Slicing,
): Promise<readonly Problem[]> {
  let problems: readonly Problem[] = [];
  for (const variant of variants) {
    problems = await problemsOf(variant, checked, slices);
    if (problems.length === 0) return [];
  }
  return problems;
}

async function problemsOfItems(
  items: TSchema,
  { value, path }: Checked & { readonly value: readonly unknown[] },
  slices: Slicing,
): Promise<readonly Problem[]> {
  for (const [at, item] of value.entries()) {
    if (at % ITEMS_PER_LOOK === 0 && slices.isOverNow()) await slices.pause();
    // Most items are small, and a promise for each of them would take longer than the check.
    if (!isLarge(item) && conforms(items, item)) continue;
    const problems = await problemsOf(items, { value: item, path: `${path}/${at}` }, slices);
    if (problems.length > 0) return problems;
  }
  return [];
}

async function problemsOfMembers(
  schema: TSchema,
  { value, path }: Checked,
  slices: Slicing,
): Promise<readonly Problem[]> {
  const members = value as Readonly<Record<string, unknown>>;
  for (const [at, name] of Object.keys(members).entries()) {
    if (at % ITEMS_PER_LOOK === 0 && slices.isOverNow()) await slices.pause();
    const member = schemaOfMember(schema as Shape, name);
    if (member === undefined || member === true) continue;
    if (!isLarge(members[name]) && conforms(member, members[name])) continue;
    const problems = await problemsOf(member, { value: members[name], path: `${path}/${pointerStep(name)}` }, slices);
    if (problems.length > 0) return problems;
  }
  return [];
}

function isLarge(value: unknown): value is object {
  return isLargeJson(value) || (Array.isArray(value) && value.length > HTTP_TURN_LIST_MAX_ITEMS);
}

function within(path: string, problems: readonly Problem[]): readonly Problem[] {
  return problems.map((problem) => ({ ...problem, instancePath: `${path}${problem.instancePath}` }));
}

function pointerStep(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

const OF_MEMBERS = new Set(["items", "properties", "patternProperties"]);
const bare = new WeakMap<TSchema, Validator>();

/** Validator of a list or an object that ignores its items and members. */
function bareOf(schema: TSchema): Validator {
  let validator = bare.get(schema);
  if (validator === undefined) {
    const rest = Object.entries(schema).filter(([name]) => !OF_MEMBERS.has(name));
    validator = Compile({ ...Object.fromEntries(rest), additionalProperties: true } as TSchema);
    bare.set(schema, validator);
  }
  return validator;
}

const withoutMembers = new WeakMap<TSchema, Map<string, Validator>>();

/** Validator of an input that ignores these members. */
function without(schema: TSchema, names: readonly string[]): Validator {
  let known = withoutMembers.get(schema);
  if (known === undefined) withoutMembers.set(schema, (known = new Map()));
  const key = names.toSorted().join();
  let validator = known.get(key);
  if (validator === undefined) {
    const { properties = {}, required = [] } = schema as Shape & { readonly required?: readonly string[] };
    const isLeft = (name: string): boolean => !names.includes(name);
    validator = Compile({
      ...schema,
      properties: Object.fromEntries(Object.entries(properties).filter(([name]) => isLeft(name))),
      required: required.filter(isLeft),
    } as TSchema);
    known.set(key, validator);
  }
  return validator;
}
