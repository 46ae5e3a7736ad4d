import type { Expression, Shape } from "../plan/outputs.ts";
import { groupsOf, sourcesOf } from "./groups.ts";

/**
 * Throws where what is answered, ordered by or grouped cannot be computed, before anything is read: rows are made by
 * what is bound anew for each run, which of a SELECT inside another one begins late.
 */
export function requireBound<R>(shape: Shape<R>): void {
  const { fields, grouping, outputs, orderBy } = shape;
  if (grouping) {
    sourcesOf(shape, groupsOf(shape, grouping).groups);
    return;
  }
  const values = [...outputs, ...orderBy].flatMap((one): readonly Expression[] => ("value" in one ? [one.value] : []));
  for (const value of values) if (value.kind === "field" && value.field.computed) fields.source(value.field);
}
