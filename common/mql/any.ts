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

/** `any(x)`: at a side of a comparison it stands for each member of x. `any` without brackets is a name. */
export function isAny(operand: Operand): operand is Computed {
  return operand.kind === "computed" && operand.name === "any";
}

/** The same comparison, with the `any(x)` that only its right side has on its left. */
export function anyOnLeft(condition: Relate): Compare | Relate {
  const { left, right, operator } = condition;
  if (!isAny(right) || isAny(left)) return condition;
  const turned = { ...condition, operator: TURNED[operator], left: right };
  return isValueNode(left) ? { ...turned, kind: "compare", right: left } : { ...turned, right: left };
}
