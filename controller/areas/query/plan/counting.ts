import type { Condition } from "../../../../common/mql/index.ts";
import type { CountRequest, Pushdown } from "../../objects/index.ts";
import type { BoundField } from "../expressions/fields.ts";
import type { GroupPlan } from "./outputs.ts";
import type { SelectPlan } from "./plan.ts";
import { conjuncts } from "./pushdown.ts";
import { cellsOf, type Scope } from "./scope.ts";

/** A SELECT that counts objects, all together or by one column, whose condition indexes may tell wholly. */
export interface CountPlan {
  readonly grouping: GroupPlan;
  /** Together all objects that are counted. */
  readonly requests: readonly CountRequest[];
}

/** `undefined` for a SELECT that follows from more than counts, or from rows of which some are not seen. */
export function countPlan(plan: SelectPlan): CountPlan | undefined {
  const { grouping, scope, reads, where, follows } = plan;
  if (follows || grouping === undefined || grouping.fill !== undefined || grouping.keys.length > 1) return undefined;
  if (!grouping.aggregates.every(({ name, field, distinct }) => name === "count" && !field && !distinct))
    return undefined;
  const [key] = grouping.keys;
  if (key !== undefined && !isColumn(key)) return undefined;
  if (isRuled(scope) || reads.some(({ ids, asOfMs }) => ids !== undefined || asOfMs !== undefined)) return undefined;
  if (!reads.every((read) => isWholeCondition(where, read.where ?? []))) return undefined;
  const requests = reads.map(({ class: path, subtree, where: pushdowns }) => ({
    class: path,
    subtree,
    ...(pushdowns ? { where: pushdowns } : {}),
    ...(key === undefined ? {} : { by: key.name }),
  }));
  return { grouping, requests };
}

/** A column itself, none of its members and nothing that is made of it. */
function isColumn({ pseudo, members, series, computed, window }: BoundField): boolean {
  return !pseudo && members.length === 0 && !series && !computed && !window;
}

/** Whether some rows, or values of some rows, are not for the principal. */
function isRuled(scope: Scope): boolean {
  return cellsOf(scope) !== undefined || scope.classes.some((view) => scope.rowCondition(view) !== undefined);
}

/** Each part of the condition is pushed down as one, and means just that. */
function isWholeCondition(where: Condition | undefined, pushdowns: readonly Pushdown[]): boolean {
  const parts = conjuncts(where);
  return parts.length === pushdowns.length && pushdowns.every(({ kind }) => kind === "equals");
}
