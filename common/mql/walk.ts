import type { And, Call, Condition, Field, Not, Operand, Or } from "./ast.ts";

/** Operands of a condition's comparisons that are not plain values, from left to right. */
export function operandsOf(condition: Condition): readonly Operand[] {
  switch (condition.kind) {
    case "and":
    case "or":
      return condition.items.flatMap(operandsOf);
    case "not":
      return operandsOf(condition.operand);
    case "compare":
      return [condition.left];
    case "relate":
      return [condition.left, condition.right];
    default:
      return [condition.operand];
  }
}

/** The direct operands of an operand. Operands inside a call are excluded, because they concern the rows of a group. */
export function insideOf(operand: Operand): readonly Operand[] {
  switch (operand.kind) {
    case "computed":
      return operand.operands;
    case "case":
      return [
        ...operand.branches.flatMap(({ when, then }) => [...operandsOf(when), then]),
        ...(operand.otherwise ? [operand.otherwise] : []),
      ];
    case "truth":
      return operandsOf(operand.condition);
    default:
      return [];
  }
}

/** Fields and calls of an operand, from left to right. Fields inside a call are part of the call. */
export function partsOf(operand: Operand): readonly (Field | Call)[] {
  return operand.kind === "field" || operand.kind === "call" ? [operand] : insideOf(operand).flatMap(partsOf);
}

export function partsOfCondition(condition: Condition): readonly (Field | Call)[] {
  return operandsOf(condition).flatMap(partsOf);
}

/** Maximum number of fields, values, operators and functions in one evaluation of the operand. */
export function stepsOf(operand: Operand): number {
  return insideOf(operand).reduce((steps, inner) => steps + stepsOf(inner), 1);
}

/** Replacements for operands and comparisons. Their own operands are replaced first. */
interface Replacing {
  readonly operand?: (operand: Operand) => Operand;
  readonly comparison?: (condition: Comparison) => Condition;
}

type Comparison = Exclude<Condition, And | Or | Not>;

/** Replaces every operand, the inner ones first. Unchanged nodes are reused. */
export function mapOperand(operand: Operand, map: Replacing): Operand {
  const replaced = mapInside(operand, map);
  return map.operand ? map.operand(replaced) : replaced;
}

function mapInside(operand: Operand, map: Replacing): Operand {
  switch (operand.kind) {
    case "computed": {
      const operands = mapped(operand.operands, (item) => mapOperand(item, map));
      return operands === operand.operands ? operand : { ...operand, operands };
    }
    case "case": {
      const branches = mapped(operand.branches, (branch) => {
        const when = mapCondition(branch.when, map);
        const then = mapOperand(branch.then, map);
        return when === branch.when && then === branch.then ? branch : { when, then };
      });
      const otherwise = operand.otherwise && mapOperand(operand.otherwise, map);
      const isSame = branches === operand.branches && otherwise === operand.otherwise;
      return isSame ? operand : { ...operand, branches, otherwise };
    }
    case "truth": {
      const condition = mapCondition(operand.condition, map);
      return condition === operand.condition ? operand : { ...operand, condition };
    }
    case "call": {
      const argument = operand.argument && mapOperand(operand.argument, map);
      const isArgument = argument === undefined || argument.kind === "field" || isExpression(argument);
      return argument === operand.argument || !isArgument ? operand : { ...operand, argument };
    }
    default:
      return operand;
  }
}

export function mapCondition(condition: Condition, map: Replacing): Condition {
  switch (condition.kind) {
    case "and":
    case "or": {
      const items = mapped(condition.items, (item) => mapCondition(item, map));
      return items === condition.items ? condition : { ...condition, items };
    }
    case "not": {
      const operand = mapCondition(condition.operand, map);
      return operand === condition.operand ? condition : { ...condition, operand };
    }
    default: {
      const replaced = mapComparison(condition, map);
      return map.comparison ? map.comparison(replaced) : replaced;
    }
  }
}

function mapComparison(condition: Comparison, map: Replacing): Comparison {
  switch (condition.kind) {
    case "compare": {
      const left = mapOperand(condition.left, map);
      return left === condition.left ? condition : { ...condition, left };
    }
    case "relate": {
      const left = mapOperand(condition.left, map);
      const right = mapOperand(condition.right, map);
      if (isValueNode(right)) return { ...condition, kind: "compare", left, right };
      return left === condition.left && right === condition.right ? condition : { ...condition, left, right };
    }
    default: {
      const operand = mapOperand(condition.operand, map);
      return operand === condition.operand ? condition : { ...condition, operand };
    }
  }
}

function mapped<T>(items: readonly T[], map: (item: T) => T): readonly T[] {
  const made = items.map(map);
  return made.every((item, at) => item === items[at]) ? items : made;
}

function isExpression(operand: Operand): operand is Extract<Operand, { kind: "computed" | "case" | "truth" }> {
  return operand.kind === "computed" || operand.kind === "case" || operand.kind === "truth";
}

/** Returns true for a literal value; false for a field or an expression. */
export function isValueNode(
  operand: Operand,
): operand is Exclude<Operand, { kind: "field" | "call" | "computed" | "case" | "truth" }> {
  return operand.kind !== "field" && operand.kind !== "call" && !isExpression(operand);
}
