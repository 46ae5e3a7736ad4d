import { AppError } from "../../../../common/errors.ts";
import { unknownName } from "../../../../common/text/nearest.ts";
import { QUERY_WINDOW_DISTANCE_MAX } from "../../../../common/limits.ts";
import { type Operand, printWindow, type WindowItem } from "../../../../common/mql/index.ts";
import { bindOperand, isOfGroup } from "../expressions/bind.ts";
import type { Declared } from "../expressions/declared.ts";
import type { BoundField, Names } from "../expressions/fields.ts";
import { type Kind, NUMBER } from "../expressions/kind.ts";
import { type Arguments, literal } from "../expressions/literal.ts";
import { about } from "../expressions/placing.ts";

export const WINDOW_FUNCTIONS = ["lag", "lead", "row_number", "sum", "count", "avg", "rate"] as const;
export type WindowFunction = (typeof WINDOW_FUNCTIONS)[number];

export const DECLARED_WINDOWS: Readonly<Record<WindowFunction, Declared>> = {
  lag: {
    form: "lag(x, [distance])",
    about: "That of the row before, or of so many rows before.",
    example: "lag(n) over (order by at)",
  },
  lead: {
    form: "lead(x, [distance])",
    about: "That of the row behind, or of so many rows behind.",
    example: "lead(n, 2) over (order by at)",
  },
  row_number: {
    form: "row_number()",
    about: "The place of the row, counted from 1.",
    example: "row_number() over (partition by s order by at)",
  },
  sum: {
    form: "sum(number)",
    about: "All added up to this row; without an order all of the partition.",
    example: "sum(n) over (order by at)",
  },
  count: { form: "count(*), count(x)", about: "How many up to this row.", example: "count(n) over (order by at)" },
  avg: { form: "avg(number)", about: "The mean up to this row.", example: "avg(n) over (order by at)" },
  rate: {
    form: "rate(number)",
    about: "By how much it grew for each second since the row before, by the one time in the order.",
    example: "rate(n) over (order by at)",
  },
};

/** A value that is added to each row, computed from the rows before and after it. */
export interface WindowPlan {
  readonly name: WindowFunction;
  /** Absent for `row_number()` and `count(*)`. */
  readonly field: BoundField | undefined;
  /** Number of rows before or after, for `lag` and `lead`. */
  readonly distance: number;
  readonly partitionBy: readonly BoundField[];
  readonly orderBy: readonly { readonly field: BoundField; readonly descending: boolean }[];
}

interface Meaning {
  readonly names: Names;
  readonly values: Arguments;
}

/** Binds a window. Errors of names and types are thrown now, not when a row comes. */
export function windowPlan(item: WindowItem, meaning: Meaning): WindowPlan {
  const name = nameOf(item);
  const [argument, further, ...others] = item.operands;
  const isMoved = name === "lag" || name === "lead";
  const isBare = name === "row_number";
  if (others.length > 0 || (further && !isMoved) || (argument && isBare) || (!argument && !isBare && name !== "count"))
    throw new AppError("invalid", `[Valid] ${name}() OVER takes ${TAKES[name]}.`);
  const orderBy = item.orderBy.map(({ value, descending }) => ({ field: bound(value, meaning), descending }));
  if (orderBy.length === 0 && ORDERED.has(name))
    throw new AppError("invalid", `[Valid] ${name}() needs an ORDER BY in OVER (…).`);
  const field = argument && bound(argument, meaning);
  if (field && NUMERIC.has(name)) requireKind(field, "number", { name, meaning });
  if (name === "rate") requireTimeOrder(orderBy, meaning);
  return {
    name,
    field,
    distance: further ? distanceOf(further, name, meaning) : 1,
    partitionBy: item.partitionBy.map((key) => bound(key, meaning)),
    orderBy,
  };
}

/** Name of the window in the SELECT, and the kinds of its values. */
export function windowField(
  item: WindowItem,
  { index, plan }: { readonly index: number; readonly plan: WindowPlan },
  names: Names,
): BoundField {
  const label = printWindow(item);
  const isValue = plan.name === "lag" || plan.name === "lead";
  const kinds: readonly Kind[] = isValue && plan.field ? names.kindsOf(plan.field) : [NUMBER];
  return { label, short: label, name: label, table: 0, pseudo: undefined, members: [], window: { index, kinds } };
}

const TAKES: Readonly<Record<WindowFunction, string>> = {
  lag: "a value and perhaps how many rows before",
  lead: "a value and perhaps how many rows behind",
  row_number: "nothing",
  sum: "one number",
  count: "one value, or *",
  avg: "one number",
  rate: "one number",
};
const ORDERED: ReadonlySet<WindowFunction> = new Set<WindowFunction>(["lag", "lead", "row_number", "rate"]);
const NUMERIC: ReadonlySet<WindowFunction> = new Set<WindowFunction>(["sum", "avg", "rate"]);

function nameOf({ name }: WindowItem): WindowFunction {
  const known = WINDOW_FUNCTIONS.find((one) => one === name);
  if (known) return known;
  const text = `[Valid] There is no ${name}() OVER: ${WINDOW_FUNCTIONS.join(", ")}.`;
  throw unknownName(text, { name, among: WINDOW_FUNCTIONS, code: "invalid" });
}

function bound(operand: Operand, { names, values }: Meaning): BoundField {
  return about(operand.span, () => {
    if (operand.kind === "call" || isOfGroup(operand))
      throw new AppError("invalid", "[Valid] An aggregate stands in no OVER (…): ask its answer by FROM (SELECT …).");
    const field = bindOperand(operand, names, values);
    names.kindsOf(field);
    return field;
  });
}

function requireKind(
  field: BoundField,
  type: Kind["type"],
  { name, meaning }: { readonly name: WindowFunction; readonly meaning: Meaning },
): void {
  if (meaning.names.kindsOf(field).some((kind) => kind.type === type || kind.type === "any")) return;
  throw new AppError("invalid", `[Valid] ${name}(${field.label}) needs numbers.`);
}

function requireTimeOrder(orderBy: WindowPlan["orderBy"], { names }: Meaning): void {
  const [order] = orderBy;
  const isTime = order && names.kindsOf(order.field).every((kind) => kind.type === "time");
  if (isTime && orderBy.length === 1 && !order.descending) return;
  throw new AppError("invalid", "[Valid] rate() needs an ORDER BY in OVER (…) of one time, the earliest first.");
}

function distanceOf(operand: Operand, name: WindowFunction, { values }: Meaning): number {
  const isWritten = operand.kind === "number" || operand.kind === "placeholder";
  const distance = isWritten ? Number(literal(operand, values)) : NaN;
  if (Number.isInteger(distance) && distance >= 0 && distance <= QUERY_WINDOW_DISTANCE_MAX) return distance;
  throw new AppError(
    "invalid",
    `[Valid] ${name}() takes a whole number of rows from 0 to ${QUERY_WINDOW_DISTANCE_MAX}.`,
  );
}
