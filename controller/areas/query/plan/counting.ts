import type { Condition } from "../../../../common/mql/index.ts";
import type { CountRequest, Pushdown } from "../../objects/index.ts";
import type { BoundField } from "../expressions/fields.ts";
import type { GroupPlan } from "./outputs.ts";
import type { SelectPlan } from "./plan.ts";
import { conjuncts } from "./pushdown.ts";
import { cellsOf, type Scope } from "./names/scope.ts";

/** Plan of a SELECT that counts objects, all together or by one column, by indexes only. */
export interface CountPlan {
  readonly grouping: GroupPlan;
  /** Requests that together count all objects. */
  readonly requests: readonly CountRequest[];
}

/** `undefined` for a SELECT that needs more than counts, or whose principal does not see all rows and values. */
export function countPlan(plan: SelectPlan): CountPlan | undefined {
  const { grouping, scope, reads, where, follows } = plan;
  if (follows || grouping === undefined || grouping.fill !== undefined || grouping.keys.length > 1) return undefined;
  if (!grouping.aggregates.every(({ name, field, distinct }) => name === "count" && !field && !distinct))
    return undefined;
  const [key] = grouping.keys;
  if (key !== undefined && !isColumn(key)) return undefined;
  if (isRuled(scope) || reads.some(({ ids, asOfMs }) => ids !== undefined || asOfMs !== undefined)) return undefined;
  const requests: CountRequest[] = [];
  for (const { class: path, subtree, where: pushdowns = [] } of reads) {
    const whole = wholeCondition(where, pushdowns);
    if (whole === undefined) return undefined;
    requests.push({ class: path, subtree, where: whole, ...(key === undefined ? {} : { by: key.name }) });
  }
  return { grouping, requests };
}

/** True for a column itself, not for a member of it or a value made from it. */
function isColumn({ pseudo, members, series, computed, window }: BoundField): boolean {
  return !pseudo && members.length === 0 && !series && !computed && !window;
}

/** True if some rows, or values of some rows, are hidden from the principal. */
function isRuled(scope: Scope): boolean {
  return cellsOf(scope) !== undefined || scope.classes.some((view) => scope.isRuled(view));
}

/** Pushdowns that mean exactly the parts of the condition. `undefined` unless each part is pushed down as a whole. */
function wholeCondition(where: Condition | undefined, pushdowns: readonly Pushdown[]): readonly Pushdown[] | undefined {
  const parts = conjuncts(where);
  if (parts.length !== pushdowns.length) return undefined;
  const exact = pushdowns.flatMap((pushdown, at) => exactly(pushdown, parts[at]) ?? []);
  return exact.length === parts.length ? exact : undefined;
}

/**
 * The pushdown that means exactly the part of the condition; `undefined` if there is none. A range includes both ends,
 * so the end of `>` moves to the next millisecond, and that of `<` to the previous one.
 */
function exactly(pushdown: Pushdown, part: Condition | undefined): Pushdown | undefined {
  if (pushdown.kind === "equals") return pushdown;
  if (pushdown.kind !== "range" || (pushdown.column !== "vtime" && pushdown.column !== "ctime")) return undefined;
  if (part?.kind === "between") return pushdown;
  if (part?.kind !== "compare") return undefined;
  const { column, from, to } = pushdown;
  if (part.operator === ">=" || part.operator === "<=") return pushdown;
  if (part.operator === ">" && from !== undefined) return { kind: "range", column, from: Math.floor(from) + 1 };
  if (part.operator === "<" && to !== undefined) return { kind: "range", column, to: Math.ceil(to) - 1 };
  return undefined;
}
