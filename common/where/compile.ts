import { AppError } from "../errors.ts";
import { PATTERN_BACKTRACKING_MAX_CHARACTERS, WHERE_ITEM_STEPS_MAX, WHERE_VALUE_MAX_CHARACTERS } from "../limits.ts";
import type { Pattern } from "../regex/pattern.ts";
import type { Value } from "../value.ts";
import type { Comparison, Link, Where } from "./ast.ts";
import { compares, equals, finite, holds, toNumber } from "./values.ts";

type Evaluate = (item: Value, work: Work) => Value;

/**
 * Compiles a condition to a function that returns true if the condition holds for an item. The function throws
 * `AppError("too_large")` for more than `WHERE_ITEM_STEPS_MAX` steps, or for a text longer than
 * `WHERE_VALUE_MAX_CHARACTERS`.
 */
export function compileWhere(where: Where): (item: Value) => boolean {
  const evaluate = compiled(where);
  return (item) => holds(evaluate(item, new Work()));
}

/** Counts the steps for one item, because nothing else runs on the thread meanwhile. */
class Work {
  #steps = 0;

  take(steps: number): void {
    this.#steps += steps;
    if (this.#steps <= WHERE_ITEM_STEPS_MAX) return;
    throw new AppError("too_large", "The condition takes too long for one of the items: its texts are too long.", {
      details: { limit: "WHERE_ITEM_STEPS_MAX" },
    });
  }
}

function compiled(where: Where): Evaluate {
  switch (where.kind) {
    case "value":
      return () => where.value;
    case "field":
      return field(where.path);
    case "any": {
      const parts = where.parts.map(compiled);
      return (item, work) => parts.some((part) => holds(part(item, work)));
    }
    case "all": {
      const parts = where.parts.map(compiled);
      return (item, work) => parts.every((part) => holds(part(item, work)));
    }
    case "compare":
      return comparison(where.operator, compiled(where.left), compiled(where.right));
    case "match":
      return match(where.pattern, where.negated, compiled(where.left));
    case "chain":
      return chain(compiled(where.first), where.rest);
    case "power": {
      const [base, exponent] = [compiled(where.base), compiled(where.exponent)];
      return (item, work) => numeric(base(item, work), exponent(item, work), (one, other) => one ** other);
    }
    case "negative": {
      const operand = compiled(where.operand);
      return (item, work) => numeric(0, operand(item, work), (_, value) => -value);
    }
  }
}

function field(path: readonly string[]): Evaluate {
  return (item) => {
    let value: Value = item;
    for (const name of path) {
      if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return null;
      value = (value as Readonly<Record<string, Value>>)[name] ?? null;
    }
    return value;
  };
}

function comparison(operator: Comparison, left: Evaluate, right: Evaluate): Evaluate {
  if (operator === "contains") return (item, work) => isContained(right(item, work), left(item, work), work);
  return (item, work) => {
    const [one, other] = [left(item, work), right(item, work)];
    if (typeof one === "string" && typeof other === "string") work.take(Math.min(one.length, other.length));
    return compares(operator, one, other);
  };
}

/** True if `part` is a part of a text, an element of a list, or a name of a member of an object. */
function isContained(part: Value, whole: Value, work: Work): boolean {
  if (typeof whole === "string" || typeof whole === "number") {
    if (typeof part !== "string" && typeof part !== "number") return false;
    const text = String(whole);
    work.take(text.length);
    return text.includes(String(part));
  }
  if (typeof whole !== "object" || whole === null) return false;
  if (!Array.isArray(whole)) return typeof part === "string" && Object.hasOwn(whole, part);
  return (whole as readonly Value[]).some((element) => {
    work.take(typeof element === "string" && typeof part === "string" ? element.length : 1);
    return equals(element, part);
  });
}

/** A value that is neither a text nor a number matches no pattern. */
function match(pattern: Pattern, negated: boolean, left: Evaluate): Evaluate {
  return (item, work) => {
    const value = left(item, work);
    if (typeof value !== "string" && typeof value !== "number") return negated;
    const text = String(value);
    work.take(stepsOf(pattern, text));
    return pattern.test(text) !== negated;
  };
}

/**
 * On short texts, the backtracking engine may try every end of a match for every beginning. Sixteen such attempts are
 * one step.
 */
function stepsOf(pattern: Pattern, text: string): number {
  const { length } = text;
  const steps = pattern.steps(text);
  return length > PATTERN_BACKTRACKING_MAX_CHARACTERS ? steps : Math.max(steps, length ** 2 / 16);
}

function chain(first: Evaluate, links: readonly Link[]): Evaluate {
  const rest = links.map(({ sign, operand }) => ({ apply: SIGNS[sign], operand: compiled(operand) }));
  return (item, work) => {
    let value = first(item, work);
    for (const { apply, operand } of rest) value = apply(value, operand(item, work), work);
    return value;
  };
}

const SIGNS: Readonly<Record<Link["sign"], (left: Value, right: Value, work: Work) => Value>> = {
  "+": (left, right, work) =>
    typeof left === "string" && typeof right === "string"
      ? joined(left, right, work)
      : numeric(left, right, (one, other) => one + other),
  "-": (left, right) => numeric(left, right, (one, other) => one - other),
  "*": (left, right) => numeric(left, right, (one, other) => one * other),
  "/": (left, right) => numeric(left, right, (one, other) => one / other),
  "%": (left, right) => numeric(left, right, (one, other) => one % other),
};

function joined(left: string, right: string, work: Work): string {
  const length = left.length + right.length;
  work.take(length);
  if (length <= WHERE_VALUE_MAX_CHARACTERS) return left + right;
  throw new AppError("too_large", `A condition makes texts of at most ${WHERE_VALUE_MAX_CHARACTERS} characters.`, {
    details: { limit: "WHERE_VALUE_MAX_CHARACTERS" },
  });
}

/** `null` if an operand is no number or the result is not finite. */
function numeric(left: Value, right: Value, calculate: (left: number, right: number) => number): Value {
  const [one, other] = [toNumber(left), toNumber(right)];
  return one === null || other === null ? null : finite(calculate(one, other));
}
