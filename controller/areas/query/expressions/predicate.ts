import { AppError, isAppError } from "../../../../common/errors.ts";
import type { Condition, Operand, ValueNode } from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import { ANY, type Kind } from "./kind.ts";
import { type Arguments, literal, literals } from "./literal.ts";
import { about } from "./placing.ts";
import { type Question, type Test, testFor } from "./questions.ts";

/** Undefined: unknown, as about a column that is not set or that the row's class lacks. Only true lets a row pass. */
export type Truth = boolean | undefined;
export type Predicate<R> = (row: R) => Truth;

/** The left side of a comparison: where its value comes from. */
export interface Source<R> {
  /** For messages. */
  readonly label: string;
  /** Every kind the value can have over all rows. */
  readonly kinds: readonly Kind[];
  /** Null: not set. Undefined: the row's class has no such column. */
  read(row: R): Value | undefined;
  /** One of `kinds`; asked only when the value is set. */
  kind(row: R): Kind;
}

export interface PredicateContext<R> {
  readonly values: Arguments;
  readonly resolve: (operand: Exclude<Operand, ValueNode>) => Source<R>;
}

/** Binds a condition: unknown fields and values that fit no column are errors now, not when a row comes. */
export function compilePredicate<R>(condition: Condition, context: PredicateContext<R>): Predicate<R> {
  switch (condition.kind) {
    case "and":
      return all(condition.items.map((item) => compilePredicate(item, context)));
    case "or":
      return any(condition.items.map((item) => compilePredicate(item, context)));
    case "not":
      return negate(compilePredicate(condition.operand, context));
    case "isNull":
      return about(condition.span, () => isNull(sourceOf(condition.operand, context), condition.negated));
    case "textMatch":
    case "compare":
    case "in":
    case "like":
    case "between":
    case "contains":
      return about(condition.span, () => leaf(condition, context));
  }
}

type Leaf = Extract<Condition, { kind: "compare" | "in" | "like" | "between" | "contains" | "textMatch" }>;

function leaf<R>(condition: Leaf, context: PredicateContext<R>): Predicate<R> {
  const operand = condition.kind === "compare" ? condition.left : condition.operand;
  const source = sourceOf(operand, context);
  const question = questionOf(condition, context.values);
  if (question.kind === "compare" && question.value === null) return comparedWithNull(source, question.operator);
  const test = asked(source, question);
  return condition.kind !== "compare" && condition.negated ? negate(test) : test;
}

function questionOf(condition: Leaf, values: Arguments): Question {
  switch (condition.kind) {
    case "compare":
      return { kind: "compare", operator: condition.operator, value: literal(condition.right, values) };
    case "in":
      return { kind: "in", values: literals(condition.values, values) };
    case "like":
      return { kind: "like", pattern: literal(condition.pattern, values) };
    case "between":
      return { kind: "between", low: literal(condition.low, values), high: literal(condition.high, values) };
    case "contains":
      return { kind: "contains", value: literal(condition.value, values) };
    case "textMatch":
      return { kind: "textMatch", operator: condition.operator, value: literal(condition.value, values) };
  }
}

/**
 * A class where the question makes no sense has no matching rows; when it makes none in any class, that is an error.
 */
function asked<R>(source: Source<R>, question: Question): Predicate<R> {
  const tests = new Map<Kind, Test>();
  let refusal: unknown;
  for (const kind of source.kinds) {
    try {
      tests.set(kind, testFor(question, kind, source.label));
    } catch (error) {
      if (!isAppError(error, "invalid")) throw error;
      refusal = error;
    }
  }
  if (tests.size === 0 && refusal !== undefined) throw refusal;
  return (row) => {
    const value = source.read(row);
    if (value === undefined || value === null) return undefined;
    return tests.get(source.kind(row))?.(value);
  };
}

function comparedWithNull<R>(source: Source<R>, operator: string): Predicate<R> {
  if (operator === "=") return isNull(source, false);
  if (operator === "!=") return isNull(source, true);
  throw new AppError("invalid", `[Valid] ${source.label} cannot be ordered against null.`);
}

function isNull<R>(source: Source<R>, negated: boolean): Predicate<R> {
  return (row) => {
    const value = source.read(row);
    return value === undefined ? undefined : (value === null) !== negated;
  };
}

function sourceOf<R>(operand: Operand, context: PredicateContext<R>): Source<R> {
  if (operand.kind === "field" || operand.kind === "call") return context.resolve(operand);
  const value = literal(operand, context.values);
  return { label: JSON.stringify(value), kinds: [ANY], read: () => value, kind: () => ANY };
}

function all<R>(predicates: readonly Predicate<R>[]): Predicate<R> {
  return (row) => {
    let result: Truth = true;
    for (const predicate of predicates) {
      const truth = predicate(row);
      if (truth === false) return false;
      if (truth === undefined) result = undefined;
    }
    return result;
  };
}

function any<R>(predicates: readonly Predicate<R>[]): Predicate<R> {
  return (row) => {
    let result: Truth = false;
    for (const predicate of predicates) {
      const truth = predicate(row);
      if (truth === true) return true;
      if (truth === undefined) result = undefined;
    }
    return result;
  };
}

function negate<R>(predicate: Predicate<R>): Predicate<R> {
  return (row) => {
    const truth = predicate(row);
    return truth === undefined ? undefined : !truth;
  };
}
