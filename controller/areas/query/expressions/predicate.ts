import { AppError, isAppError } from "../../../../common/errors.ts";
import {
  anyOnLeft,
  type Call,
  type Condition,
  type Expression,
  type Field,
  isAny,
  type Operand,
  type Relate,
} from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import { computedSource, constantSource } from "./computed.ts";
import type { Kind } from "./kind.ts";
import { type Arguments, listed, literal } from "./literal.ts";
import { hasMember, membersOf } from "./members.ts";
import { about } from "./placing.ts";
import { type Question, type Test, testFor } from "./questions.ts";
import { related, relatedMembers } from "./related.ts";
import type { Predicate, Source, Truth } from "./source.ts";
import { THREAD_TEXT_WORK } from "./functions/textwork.ts";

export type { Predicate, Source } from "./source.ts";

export interface PredicateContext<R> {
  readonly values: Arguments;
  readonly resolve: (operand: Field | Call) => Source<R>;
  /** Sources of expressions whose values are already computed; absent: none. */
  readonly known?: (operand: Expression) => Source<R> | undefined;
}

/** Binds a condition. Unknown fields, and values that fit no column, are errors now and not when a row comes. */
export function compilePredicate<R>(condition: Condition, context: PredicateContext<R>): Predicate<R> {
  switch (condition.kind) {
    case "and":
      return all(condition.items.map((item) => compilePredicate(item, context)));
    case "or":
      return any(condition.items.map((item) => compilePredicate(item, context)));
    case "not":
      return negate(compilePredicate(condition.operand, context));
    case "isNull":
      return about(condition.span, () => isNull(compileOperand(condition.operand, context), condition.negated));
    case "relate":
      return about(condition.span, () => relation(condition, context));
    case "inSelect":
      throw new RangeError("IN (SELECT …) is answered before the condition is bound");
    case "textMatch":
    case "compare":
    case "in":
    case "like":
    case "between":
    case "contains":
      return about(condition.span, () => leaf(condition, context));
  }
}

function relation<R>(condition: Relate, context: PredicateContext<R>): Predicate<R> {
  const turned = anyOnLeft(condition);
  if (turned.kind === "compare") return leaf(turned, context);
  const { operator, left, right } = turned;
  if (!isAny(left)) return related(operator, compileOperand(left, context), compileOperand(right, context));
  if (isAny(right)) throw new AppError("invalid", "[Valid] any() stands on one side of a comparison only.");
  return relatedMembers(operator, membersOf(compiled(left.operands, context)), compileOperand(right, context));
}

function compiled<R>(operands: readonly Operand[], context: PredicateContext<R>): readonly Source<R>[] {
  return operands.map((operand) => compileOperand(operand, context));
}

type Leaf = Extract<Condition, { kind: "compare" | "in" | "like" | "between" | "contains" | "textMatch" }>;

function leaf<R>(condition: Leaf, context: PredicateContext<R>): Predicate<R> {
  const operand = condition.kind === "compare" ? condition.left : condition.operand;
  const question = questionOf(condition, context.values);
  const negated = condition.kind !== "compare" && condition.negated;
  if (isAny(operand)) return askedMembers(compiled(operand.operands, context), question, negated);
  const source = compileOperand(operand, context);
  if (question.kind === "compare" && question.value === null) return comparedWithNull(source, question.operator);
  const test = asked(source, question);
  return negated ? negate(test) : test;
}

function questionOf(condition: Leaf, values: Arguments): Question {
  switch (condition.kind) {
    case "compare":
      return { kind: "compare", operator: condition.operator, value: literal(condition.right, values) };
    case "in":
      return {
        kind: "in",
        values: listed(condition, values),
        ...(condition.foundBy ? { areFound: true } : {}),
      };
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

/** Effort of PHRASE, PREFIX and FUZZY, compared with LIKE. */
const WORDS_IN_ORDER_EFFORT = 20;

/** Effort of a question that reads a text to its end; 0 for other questions. */
function effortOf(question: Question): number {
  if (question.kind === "like" || question.kind === "contains") return 1;
  if (question.kind !== "textMatch") return 0;
  return question.operator === "MATCH" ? 1 : WORDS_IN_ORDER_EFFORT;
}

/**
 * In a class whose values cannot be asked this, no row matches. `AppError("invalid")` if that holds for every class.
 */
function asked<R>(source: Source<R>, question: Question): Predicate<R> {
  return answering(source, question, (test, value) => test(value));
}

/** True if the answer is true for one member. NOT before IN, LIKE, … applies to each member, too. */
function askedMembers<R>(operands: readonly Source<R>[], question: Question, negated: boolean): Predicate<R> {
  const members = membersOf(operands);
  if (question.kind === "compare" && question.value === null)
    throw new AppError("invalid", `[Valid] ${members.label} cannot be compared with null: members are always set.`);
  return answering(members, question, (test, whole) => hasMember(whole, (member) => test(member) !== negated));
}

function answering<R>(
  source: Pick<Source<R>, "label" | "kinds" | "read" | "kind">,
  question: Question,
  answer: (test: Test, value: Value) => boolean,
): Predicate<R> {
  const tests = testsFor(source, question);
  const effort = effortOf(question);
  return (row) => {
    const value = source.read(row);
    if (value === undefined || value === null) return undefined;
    if (effort > 0) THREAD_TEXT_WORK.look(row, value, effort);
    const test = tests.get(source.kind(row));
    return test && answer(test, value);
  };
}

function testsFor(
  { kinds, label }: Pick<Source<never>, "kinds" | "label">,
  question: Question,
): ReadonlyMap<Kind, Test> {
  const tests = new Map<Kind, Test>();
  let refusal: unknown;
  for (const kind of kinds) {
    try {
      tests.set(kind, testFor(question, kind, label));
    } catch (error) {
      if (!isAppError(error, "invalid")) throw error;
      refusal ??= error;
    }
  }
  if (tests.size === 0 && refusal !== undefined) throw refusal;
  return tests;
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

/** The source of an operand's value. Errors of names and types are thrown now, not when a row comes. */
export function compileOperand<R>(operand: Operand, context: PredicateContext<R>): Source<R> {
  switch (operand.kind) {
    case "field":
    case "call":
      return context.resolve(operand);
    case "computed":
    case "case":
    case "truth":
      return (
        context.known?.(operand) ??
        computedSource(operand, {
          operand: (inner) => compileOperand(inner, context),
          condition: (inner) => compilePredicate(inner, context),
        })
      );
    default:
      return constantSource(literal(operand, context.values));
  }
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
