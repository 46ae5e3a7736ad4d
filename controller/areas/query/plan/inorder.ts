import type { ReadOrder } from "../../objects/index.ts";
import type { OrderPlan } from "./outputs.ts";
import type { SelectPlan } from "./plan.ts";
import { cellsOf } from "./names/scope.ts";

/** Plan for the first rows of a SELECT that is ordered by one column, for which an index may have the order. */
export interface InOrderPlan {
  readonly order: ReadOrder;
  /** Number of passing rows that are enough. Rows whose value equals that of the last one are needed, too. */
  readonly rows: number;
  /** True if every passing row has a value in the column. */
  readonly isOfAll: boolean;
  /** True if rows with equal values are ordered by id only, in the same direction. */
  readonly isById: boolean;
}

/** `undefined` if all rows are needed, or if the order of the answer is not that of stored values. */
export function inOrderPlan(plan: SelectPlan): InOrderPlan | undefined {
  const { grouping, distinct, windows, follows, reads, scope, paging } = plan;
  const [read, ...others] = reads;
  const [first] = plan.orderBy;
  if (grouping || distinct || windows.length > 0 || follows?.asked || !read || others.length > 0) return undefined;
  if (!(paging ? !paging.stored : plan.sort === "top") || read.ids || read.asOfMs !== undefined) return undefined;
  const column = first && columnOf(first);
  if (column === undefined || cellsOf(scope) || scope.classes.some((view) => view.kind !== "entity")) return undefined;
  const rows = (plan.limit ?? 0) + (paging ? 0 : plan.offset + (plan.isCut ? 1 : 0));
  const isOfAll =
    first?.value.kind === "field" && first.value.field.pseudo !== undefined
      ? true
      : (read.where ?? []).some((one) => one.kind === "range" && one.column === column);
  const from = paging?.after?.[0];
  // Rows without a value come before all others, and indexes do not contain them.
  const isAscending = !first?.descending;
  if (rows <= 0 || (isAscending && !isOfAll)) return undefined;
  // Rows get what their relations lead to later, so until then it is unknown which rows are behind the page.
  if (paging?.after && (typeof from !== "number" || (follows && plan.orderBy.some(mayFollow)))) return undefined;
  const isById = scope.classes.length === 1 && plan.orderBy.slice(1).every((order) => isIdIn(order, !isAscending));
  const id = paging?.after?.at(-1);
  const behind = isById && typeof id === "string" && isPlainId(id) ? { behind: id } : {};
  return {
    order: { column, descending: !isAscending, ...(typeof from === "number" ? { from, ...behind } : {}) },
    rows,
    isOfAll,
    isById,
  };
}

/** True if the order may need what a relation leads to, as a computed value may. */
function mayFollow({ value }: OrderPlan): boolean {
  return value.kind !== "field" || value.field.relation !== undefined || value.field.computed !== undefined;
}

/** True for an order by id in this direction, or by class, which is the same for all rows here. */
function isIdIn({ value, descending }: OrderPlan, isDescending: boolean): boolean {
  if (value.kind !== "field" || value.field.computed || value.field.window) return false;
  const { pseudo } = value.field;
  return pseudo === "class" || (pseudo === "id" && descending === isDescending);
}

/**
 * True if indexes and comparisons order the id the same way. They differ for other ids: indexes order by code points,
 * comparisons by UTF-16 units.
 */
export function isPlainId(id: string): boolean {
  return !/[\ud800-\uffff]/.test(id);
}

function columnOf({ value }: OrderPlan): string | undefined {
  if (value.kind !== "field") return undefined;
  const { name, pseudo, members, relation, window, series, computed } = value.field;
  if (members.length > 0 || relation || window || series || computed) return undefined;
  return pseudo === undefined || pseudo === "vtime" || pseudo === "mtime" ? name : undefined;
}
