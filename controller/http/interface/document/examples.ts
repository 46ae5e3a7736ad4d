import type { TSchema } from "typebox";
import type { Endpoint } from "../endpoint.ts";

interface Shape {
  readonly type?: string;
  readonly examples?: readonly unknown[];
  readonly default?: unknown;
  readonly const?: unknown;
  readonly anyOf?: readonly TSchema[];
  readonly items?: TSchema;
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly required?: readonly string[];
}

/**
 * The input of the example call of an endpoint. Its members are the examples of the input schema; a required member
 * without one gets a value of its schema, or is absent if the schema leaves its value open.
 */
export function exampleInput({ input, example }: Pick<Endpoint, "input" | "example">): Record<string, unknown> {
  return { ...(exampleOf(input) as Record<string, unknown>), ...example };
}

/** An example of the schema; `undefined` if it has none and its value is open. */
function exampleOf(schema: TSchema): unknown {
  const { examples, type, anyOf, items, ...rest } = schema as Shape;
  if (examples !== undefined) return examples[0];
  if (rest.default !== undefined) return rest.default;
  if (rest.const !== undefined) return rest.const;
  if (anyOf?.[0] !== undefined) return exampleOf(anyOf[0]);
  if (type === "boolean") return true;
  if (type === "object") return membersOf(rest);
  if (type !== "array" || items === undefined) return undefined;
  const item = exampleOf(items);
  return item === undefined ? undefined : [item];
}

function membersOf({ properties = {}, required = [] }: Pick<Shape, "properties" | "required">): unknown {
  const members = Object.entries(properties).flatMap(([name, schema]) => {
    const isShown = required.includes(name) || (schema as Shape).examples !== undefined;
    const value = isShown ? exampleOf(schema) : undefined;
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(members);
}
