import { type Condition, isAny, type Operand, type Relate, type ValueNode } from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import { order } from "../definitions.ts";

/** True, false, or `undefined` for unknown. */
export type Truth = boolean | undefined;

type Leaf = Exclude<Condition, { kind: "and" | "or" | "not" | "inSelect" }>;

export function leafTruth(condition: Leaf, read: (operand: Operand) => Value | undefined): Truth {
  if (condition.kind === "relate") return relatedTruth(condition, read);
  const operand = condition.kind === "compare" ? condition.left : condition.operand;
  const own = read(wholeOf(operand));
  if (own === undefined) return undefined;
  if (condition.kind === "isNull") return (own === null) !== condition.negated;
  if (own === null) return undefined;
  const negated = condition.kind !== "compare" && condition.negated;
  return choicesOf(operand, own).some((one) => affirmed(condition, one) !== negated);
}

function relatedTruth({ operator, left, right }: Relate, read: (operand: Operand) => Value | undefined): Truth {
  const [first, second] = [read(wholeOf(left)) ?? null, read(wholeOf(right)) ?? null];
  if (first === null || second === null) return undefined;
  return choicesOf(left, first).some((a) => choicesOf(right, second).some((b) => compared(operator, a, b)));
}

/** The argument of `any()`, or the operand itself. */
function wholeOf(operand: Operand): Operand {
  return (isAny(operand) && operand.operands[0]) || operand;
}

/** The values of which at least one must satisfy the condition. */
function choicesOf(operand: Operand, value: Value): readonly Value[] {
  return isAny(operand) ? Object.values(value ?? {}) : [value];
}

function affirmed(condition: Exclude<Leaf, { kind: "isNull" | "relate" }>, own: Value): boolean {
  const held = heldBy(own);
  switch (condition.kind) {
    case "in":
      return condition.values.some((value) => held.includes(plain(value)));
    case "contains":
      return typeof own === "string"
        ? own.includes(String(plain(condition.value)))
        : held.includes(plain(condition.value));
    case "like":
      return held.some((one) =>
        new RegExp(`^${String(plain(condition.pattern)).replaceAll("*", ".*")}$`).test(String(one)),
      );
    case "between":
      return isOrdered(plain(condition.low), own) && isOrdered(own, plain(condition.high));
    case "textMatch":
      return matches(condition.operator, held.map(String), String(plain(condition.value)));
    case "compare":
      return compared(condition.operator, own, plain(condition.right));
  }
}

export function compared(operator: string, own: Value, wanted: Value): boolean {
  if (operator === "=" || operator === "!=") return heldBy(own).includes(wanted) === (operator === "=");
  if (operator === "<") return !isOrdered(wanted, own);
  if (operator === ">") return !isOrdered(own, wanted);
  return operator === "<=" ? isOrdered(own, wanted) : isOrdered(wanted, own);
}

/** At least one of several texts must match. */
function matches(operator: string, texts: readonly string[], wanted: string): boolean {
  const words = wanted.split(" ");
  return texts.some((text) => {
    const found = text.split(" ");
    const last = words.at(-1) ?? "";
    switch (operator) {
      case "MATCH":
        return words.every((word) =>
          found.some((one) => (word.endsWith("*") ? one.startsWith(word.slice(0, -1)) : one === word)),
        );
      case "PHRASE":
        return ` ${text} `.includes(` ${wanted} `);
      case "PREFIX":
        return found.some(
          (one, at) =>
            one.startsWith(last) &&
            words.slice(0, -1).every((word, before) => found[at - words.length + 1 + before] === word),
        );
      default:
        return words.every((word) => found.some((one) => changesBetween(word, one) <= Math.min(2, word.length - 1)));
    }
  });
}

/** Optimal string alignment distance, by its recursive definition. */
function changesBetween(left: string, right: string): number {
  if (left === "" || right === "") return left.length + right.length;
  const [a, b] = [left.at(-1), right.at(-1)];
  const [l, r] = [left.slice(0, -1), right.slice(0, -1)];
  const swapped =
    left.length > 1 && right.length > 1 && a === right.at(-2) && b === left.at(-2)
      ? 1 + changesBetween(left.slice(0, -2), right.slice(0, -2))
      : Infinity;
  return Math.min(
    changesBetween(l, right) + 1,
    changesBetween(left, r) + 1,
    changesBetween(l, r) + (a === b ? 0 : 1),
    swapped,
  );
}

/** Elements of sets, keys of maps. */
function heldBy(value: Value): readonly Value[] {
  if (Array.isArray(value)) return value as readonly Value[];
  return typeof value === "object" && value !== null ? Object.keys(value) : [value];
}

export function plain(node: ValueNode): Value {
  if (node.kind === "number") return Number(node.text);
  if (node.kind === "constant") return node.value;
  const text = node.kind === "text" ? node.value : "";
  return /^\d{4}-\d\d-\d\d /.test(text) ? Date.parse(`${text.replace(" ", "T")}Z`) : text;
}

function isOrdered(left: Value, right: Value): boolean {
  return order(left, right) <= 0;
}

export function opposite(truth: Truth): Truth {
  return truth === undefined ? undefined : !truth;
}
