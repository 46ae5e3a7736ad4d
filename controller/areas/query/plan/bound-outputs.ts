import { AppError } from "../../../../common/errors.ts";
import { QUERY_DEFAULT_LIMIT_ROWS } from "../../../../common/limits.ts";
import type { Select } from "../../../../common/mql/index.ts";
import type { BoundField } from "../expressions/fields.ts";
import { type Arguments, rowCount } from "../expressions/literal.ts";
import type { OrderPlan, OutputBinder, Shape } from "./outputs.ts";
import type { Scope } from "./names/scope.ts";

/** The parts of an answer that are given by names. */
export type BoundNames = Pick<Shape<never>, "outputs" | "orderBy" | "grouping" | "windows" | "distinct">;

/** The parts of an answer that are given by values. */
export type BoundExtent = Pick<Shape<never>, "values" | "offset" | "limit" | "isCut">;

export type BoundOutputs = BoundNames & BoundExtent;

export function bindOutputs(select: Select, binder: OutputBinder, values: Arguments): BoundOutputs {
  const names = boundNames(select, binder);
  return { ...names, ...extentOf(select, names, values) };
}

export function boundNames(select: Select, binder: OutputBinder): BoundNames {
  const outputs = binder.outputs();
  const orderBy = select.orderBy.map((item) => binder.order(item));
  const grouping = binder.grouping();
  const { windows } = binder;
  if (windows.length > 0 && select.cursor)
    throw new AppError("invalid", "[Valid] CURSOR and OVER (…) exclude each other: a page does not hold all rows.");
  return { outputs, orderBy, grouping, windows, distinct: select.distinct };
}

export function extentOf(select: Select, { grouping }: BoundNames, values: Arguments): BoundExtent {
  const offset = select.offset ? (rowCount(select.offset, values) ?? 0) : 0;
  const limit = limitOf(select, grouping !== undefined, values);
  const isCut = select.limit === undefined && limit !== undefined && !select.cursor;
  return { values, offset, limit, isCut };
}

function limitOf(select: Pick<Select, "limit">, isGrouped: boolean, values: Arguments): number | undefined {
  if (select.limit) return rowCount(select.limit, values);
  return isGrouped ? undefined : QUERY_DEFAULT_LIMIT_ROWS;
}

/** True if the stored order, in which records come newest first, is the order asked for. */
export function isStoredOrder(scope: Scope, orderBy: readonly OrderPlan[], isGrouped: boolean): boolean {
  if (isGrouped || !scope.classes.every((view) => view.kind === "record")) return false;
  const [first] = orderBy;
  if (!first) return true;
  return orderBy.length === 1 && first.descending && first.value.kind === "field" && isTimeOfRow(first.value.field);
}

function isTimeOfRow(field: BoundField): boolean {
  return field.pseudo === "vtime" || field.pseudo === "mtime";
}
