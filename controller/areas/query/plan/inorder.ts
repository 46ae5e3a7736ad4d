import type { ReadOrder } from "../../objects/index.ts";
import type { OrderPlan } from "./outputs.ts";
import type { SelectPlan } from "./plan.ts";
import { cellsOf } from "./scope.ts";

/** The first rows of a SELECT by one column, which an index may have in that order. */
export interface InOrderPlan {
  readonly order: ReadOrder;
  /** So many of the rows that pass are enough, with those equal to the last in that column. */
  readonly rows: number;
  /** No row without a value passes. */
  readonly isOfAll: boolean;
  /** Equal rows are ordered by id, in the same direction, and by nothing else. */
  readonly isById: boolean;
}

/** `undefined` where all rows count, or the order that is seen is not that of the values. */
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
  // Rows without a value come before all others, where no index has them.
  const isAscending = !first?.descending;
  if (rows <= 0 || (isAscending && !isOfAll)) return undefined;
  // Rows come with what their relations lead to later: which of them are behind a page is not known until then.
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

/** Computed values may be made of what a relation leads to. */
function mayFollow({ value }: OrderPlan): boolean {
  return value.kind !== "field" || value.field.relation !== undefined || value.field.computed !== undefined;
}

/** The class is the same for all rows. */
function isIdIn({ value, descending }: OrderPlan, isDescending: boolean): boolean {
  if (value.kind !== "field" || value.field.computed || value.field.window) return false;
  const { pseudo } = value.field;
  return pseudo === "class" || (pseudo === "id" && descending === isDescending);
}

/** Indexes order other ids by code points, comparisons by the units of UTF-16. */
export function isPlainId(id: string): boolean {
  return !/[\ud800-\uffff]/.test(id);
}

function columnOf({ value }: OrderPlan): string | undefined {
  if (value.kind !== "field") return undefined;
  const { name, pseudo, members, relation, window, series, computed } = value.field;
  if (members.length > 0 || relation || window || series || computed) return undefined;
  return pseudo === undefined || pseudo === "vtime" || pseudo === "mtime" ? name : undefined;
}
