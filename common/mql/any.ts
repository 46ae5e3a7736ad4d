import type { Compare, CompareOperator, Computed, Operand, Relate } from "./ast.ts";
import { isValueNode } from "./walk.ts";

const TURNED: Readonly<Record<CompareOperator, CompareOperator>> = {
  "=": "=",
  "!=": "!=",
  ">": "<",
  "<": ">",
  ">=": "<=",
  "<=": ">=",
};

/** True for `any(x)`, which stands for each member of x on a side of a comparison. `any` without brackets is a name. */
export function isAny(operand: Operand): operand is Computed {
  return operand.kind === "computed" && operand.name === "any";
}

/** If only the right side is `any(x)`, returns an equal comparison with the sides exchanged. */
export function anyOnLeft(condition: Relate): Compare | Relate {
  const { left, right, operator } = condition;
  if (!isAny(right) || isAny(left)) return condition;
  const turned = { ...condition, operator: TURNED[operator], left: right };
  return isValueNode(left) ? { ...turned, kind: "compare", right: left } : { ...turned, right: left };
}
