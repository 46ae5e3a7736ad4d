import {
  type Item,
  type Operand,
  type OrderItem,
  printCall,
  printOperand,
  type Select,
  type ValueNode,
} from "../../../../common/mql/index.ts";
import type { Row, Value } from "../../../../common/value.ts";
import { order } from "../definitions.ts";
import { plain } from "./truth.ts";

export interface Expected {
  readonly rows: readonly Row[];
  /** Sort keys of each row. */
  readonly keys: readonly (readonly Value[])[];
  readonly descending: readonly boolean[];
  readonly offset: number;
  readonly limit: number;
}

export interface Made {
  readonly row: Row;
  readonly keys: readonly Value[];
}

/** The rows in the order of ORDER BY; equal rows keep their order. */
export function inOrder({
  rows,
  keys,
  descending,
}: Expected): readonly { readonly row: Row; readonly keys: readonly Value[] }[] {
  return rows
    .map((row, at) => ({ row, keys: keys[at] ?? [] }))
    .sort((left, right) => {
      for (const [at, isDescending] of descending.entries()) {
        const result = order(left.keys[at] ?? null, right.keys[at] ?? null);
        if (result !== 0) return isDescending ? -result : result;
      }
      return 0;
    });
}

export function nameOf(value: Operand): string {
  if (value.kind === "field") return value.parts.join(".");
  if (value.kind !== "call") return printOperand(value);
  return value.name === "count" && !value.argument ? "count" : `system.${printCall(value)}`;
}

/** The expression of a select item that is named by its alias or its position. */
export function aliased(value: Operand, { items }: Select): Operand {
  const placed = value.kind === "number" ? items[Number(value.text) - 1] : undefined;
  if (placed?.kind === "item") return placed.value;
  const item = items.find(
    (one): one is Item =>
      one.kind === "item" && value.kind === "field" && value.parts.length === 1 && one.alias === value.parts[0],
  );
  return item ? item.value : value;
}

export function set(row: Row, name: string, value: Value | undefined): void {
  if (value !== undefined) row[name] = value;
}

export function distinct(made: readonly Made[]): readonly Made[] {
  return [...new Map(made.toReversed().map((one) => [rowText(one.row), one])).values()];
}

/** Independent of the order of members. */
export function rowText(row: Row): string {
  return JSON.stringify(
    Object.entries(row)
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([name, value]) => [name, unordered(value)]),
  );
}

/** Removes differences in sums of fractions that come from the order of additions. */
function unordered(value: Value): Value {
  if (typeof value === "number") return Number.isInteger(value) ? value : Math.round(value * 1e9) / 1e9;
  if (Array.isArray(value)) return (value as readonly Value[]).map(unordered);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value).sort() : value;
}

export function arranged(
  made: readonly Made[],
  orderBy: readonly OrderItem[],
): Pick<Expected, "rows" | "keys" | "descending"> {
  return {
    rows: made.map((one) => one.row),
    keys: made.map((one) => one.keys),
    descending: orderBy.map((item) => item.descending),
  };
}

export function windowOf(
  { limit, offset }: Pick<Select, "limit" | "offset">,
  isGrouped: boolean,
): Pick<Expected, "offset" | "limit"> {
  const count = limit ? Number(plain(limit as ValueNode)) : isGrouped ? -1 : 100;
  return { offset: offset ? Number(plain(offset as ValueNode)) : 0, limit: count === -1 ? Infinity : count };
}
