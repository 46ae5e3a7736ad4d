import type { Expression, Shape } from "../plan/outputs.ts";
import { groupsOf, sourcesOf } from "./groups.ts";

/**
 * Throws if a value of the answer, the order or the groups cannot be computed. Call it before anything is read: each
 * run binds these values again, and for a SELECT inside another one that is late.
 */
export function requireBound<R>(shape: Shape<R>): void {
  const { fields, grouping, outputs, orderBy } = shape;
  if (grouping) {
    sourcesOf(shape, groupsOf(shape, grouping).groups);
    return;
  }
  const require = (value: Expression): void => {
    if (value.kind === "field" && value.field.computed) fields.source(value.field);
  };
  for (const output of outputs) if (output.kind === "value") require(output.value);
  for (const { value } of orderBy) require(value);
}
