import type { TSchema } from "typebox";
import { conforms } from "../input/coerce.ts";
import type { Shape } from "../input/shape.ts";

/** Returns the value without the members that its schema does not name. Never changes its argument. */
export type Filter = (value: unknown) => unknown;

/** `undefined` if there is nothing to leave out: such values are sent unchanged. */
export function outputFilter(schema: TSchema): Filter | undefined {
  const shape = schema as Shape;
  if (shape.anyOf !== undefined) return unionFilter(shape.anyOf);
  if (shape.type === "array") return listFilter(shape);
  if (shape.type !== "object" || shape.additionalProperties === true) return undefined;
  return shape.patternProperties === undefined ? objectFilter(shape) : recordFilter(shape);
}

function listFilter(shape: Shape): Filter | undefined {
  const item = shape.items === undefined ? undefined : outputFilter(shape.items as TSchema);
  if (item === undefined) return undefined;
  return (value) => (Array.isArray(value) ? value.map(item) : value);
}

function objectFilter(shape: Shape): Filter {
  const members = Object.entries(shape.properties ?? {}).map(([name, schema]) => ({
    name,
    filter: outputFilter(schema),
  }));
  return (value) => {
    if (typeof value !== "object" || value === null) return value;
    const result: Record<string, unknown> = {};
    for (const { name, filter } of members) {
      const member = (value as Record<string, unknown>)[name];
      if (member !== undefined && Object.hasOwn(value, name))
        result[name] = filter === undefined ? member : filter(member);
    }
    return result;
  };
}

function recordFilter(shape: Shape): Filter | undefined {
  const [schema] = Object.values(shape.patternProperties ?? {});
  const filter = schema === undefined ? undefined : outputFilter(schema);
  if (filter === undefined) return undefined;
  return (value) => {
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, filter(member)]));
  };
}

function unionFilter(variants: readonly TSchema[]): Filter | undefined {
  const choices = variants.map((schema) => ({ schema, filter: outputFilter(schema) }));
  if (choices.every(({ filter }) => filter === undefined)) return undefined;
  return (value) => {
    const choice = choices.find(({ schema }) => conforms(schema, value));
    // A value that fits no variant has no declared member. It is left out, so that nothing undeclared is sent.
    if (choice === undefined) return null;
    return choice.filter === undefined ? value : choice.filter(value);
  };
}
