import { AppError } from "../../../../common/errors.ts";
import type { FindRequest, NumberRange } from "../../objects.ts";
import type { CqlValue } from "../cassandra/cassandra.ts";
import { SLOTS } from "../schema.ts";

/** The conditions of an index query: entities in all these classes and in all these ranges. */
export type IndexRequest = Pick<FindRequest, "ranges" | "cells"> & { readonly classes: readonly string[] };

export function conditionsOf({ classes, ranges = [] }: Omit<IndexRequest, "cells">): {
  readonly where: string;
  readonly params: readonly CqlValue[];
} {
  const conditions = [
    ...classes.map((term) => ({ text: "classes CONTAINS ?", value: term })),
    ...rangeConditions(ranges),
  ];
  return {
    where: conditions.map((condition) => condition.text).join(" AND "),
    params: conditions.map((condition) => condition.value),
  };
}

function slotColumn(slot: number): string {
  if (!SLOTS.includes(slot)) throw new AppError("invalid", `There is no number slot ${slot}.`);
  return `n${slot}`;
}

/** Cassandra takes one lower and one upper bound per column: several ranges of one slot become their intersection. */
function rangeConditions(ranges: readonly NumberRange[]): { readonly text: string; readonly value: number }[] {
  const bounds = new Map<number, { from: number; to: number }>();
  for (const range of ranges) {
    const bound = bounds.get(range.slot) ?? { from: -Infinity, to: Infinity };
    bounds.set(range.slot, {
      from: Math.max(bound.from, range.from ?? -Infinity),
      to: Math.min(bound.to, range.to ?? Infinity),
    });
  }
  return [...bounds].flatMap(([slot, bound]) => [
    { text: `${slotColumn(slot)} >= ?`, value: bound.from },
    { text: `${slotColumn(slot)} <= ?`, value: bound.to },
  ]);
}
