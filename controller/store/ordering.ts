import type { FindRequest, NumberRange } from "./objects.ts";

/** The ranges of a request. With an order, its slot has exactly one range, and that range is the first. */
export function withOrder({ ranges = [], order }: Pick<FindRequest, "ranges" | "order">): readonly NumberRange[] {
  if (order === undefined) return ranges;
  const { slot } = order;
  const own = ranges.filter((range) => range.slot === slot);
  const from = Math.max(-Infinity, ...own.map((range) => range.from ?? -Infinity));
  const to = Math.min(Infinity, ...own.map((range) => range.to ?? Infinity));
  return [{ slot, from, to }, ...ranges.filter((range) => range.slot !== slot)];
}
