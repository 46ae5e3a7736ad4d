import { AppError } from "../../../../common/errors.ts";
import type { CompareOperator } from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import { compare, isSeveral, type Kind, toComparable } from "./kind.ts";
import { hasMember, type Members } from "./members.ts";
import { canonical } from "./questions.ts";
import type { Predicate, Source, Truth } from "./source.ts";
import { THREAD_TEXT_WORK } from "./functions/textwork.ts";

/** One side of a comparison: a value of the row, or the members of such a value. */
type Side<R> = Pick<Source<R>, "label" | "kinds" | "read" | "kind">;

/** `left operator right`, both from the row. Unknown if one of them is not set, or if their kinds have no order. */
export function related<R>(operator: CompareOperator, left: Source<R>, right: Source<R>): Predicate<R> {
  return comparing({ operator, left, right }, (kind, first, second) => truthOf(operator, kind, [first, second]));
}

/** `any(x) operator right`: true if it holds for one member of x. */
export function relatedMembers<R>(operator: CompareOperator, left: Members<R>, right: Source<R>): Predicate<R> {
  return comparing({ operator, left, right }, (kind, whole, second) =>
    hasMember(whole, (member) => truthOf(operator, kind, [member, second]) === true),
  );
}

interface Sides<R> {
  readonly operator: CompareOperator;
  readonly left: Side<R>;
  readonly right: Side<R>;
}

function comparing<R>(
  { operator, left, right }: Sides<R>,
  truth: (kind: Kind, first: Value, second: Value) => Truth,
): Predicate<R> {
  const several = [left, right].find(({ kinds }) => kinds.length > 0 && kinds.every(isSeveral));
  if (several && !isEquality(operator))
    throw new AppError(
      "invalid",
      `[Valid] ${left.label} ${operator} ${right.label}: a ${several.kinds[0]?.type ?? "list"} has no order.`,
    );
  return (row) => {
    const first = left.read(row);
    const second = right.read(row);
    if (first === undefined || first === null || second === undefined || second === null) return undefined;
    THREAD_TEXT_WORK.charge(row, first);
    THREAD_TEXT_WORK.charge(row, second);
    return truth(kindOfBoth(left.kind(row), right.kind(row)), first, second);
  };
}

/** The kind as which both are compared. A number, a time or a boolean also equals its text. */
function kindOfBoth(left: Kind, right: Kind): Kind {
  if (left === right) return left;
  const isLoose = left.type === "text" || left.type === "any";
  return isLoose ? right : left;
}

function truthOf(operator: CompareOperator, kind: Kind, [left, right]: readonly [Value, Value]): Truth {
  if (!isEquality(operator) && isSeveral(kind)) return undefined;
  const order = orderOf(kind, left, right);
  return order === undefined ? undefined : holds(operator, order);
}

function isEquality(operator: CompareOperator): boolean {
  return operator === "=" || operator === "!=";
}

function orderOf(kind: Kind, left: Value, right: Value): number | undefined {
  if (isSeveral(kind)) return canonical(left) === canonical(right) ? 0 : 1;
  const first = toComparable(kind, left);
  const second = toComparable(kind, right);
  return first === undefined || second === undefined ? undefined : compare(first, second);
}

function holds(operator: CompareOperator, order: number): boolean {
  switch (operator) {
    case "=":
      return order === 0;
    case "!=":
      return order !== 0;
    case "<":
      return order < 0;
    case "<=":
      return order <= 0;
    case ">":
      return order > 0;
    case ">=":
      return order >= 0;
  }
}
