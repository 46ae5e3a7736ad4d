import type { Condition, Field, ValueNode } from "../../../common/mql/index.ts";
import type { Value } from "../../../common/value.ts";
import type { Pushdown } from "../objects/index.ts";
import { type Comparable, type Kind, kindOf, TIME, toComparable, toValue } from "./kind.ts";
import { type Arguments, isList, isMap, literal, literals } from "./literal.ts";
import type { BoundField, Scope } from "./scope.ts";

/** What of a condition can narrow a read. It narrows only: every row is checked against the whole condition afterwards. */
export interface Narrowing {
  readonly ids: readonly string[] | undefined;
  readonly where: readonly Pushdown[];
}

const DAY_MS = 86_400_000;

export function narrow(condition: Condition | undefined, scope: Scope, values: Arguments): Narrowing {
  const where: Pushdown[] = [];
  let ids: readonly string[] | undefined;
  for (const conjunct of conjuncts(condition)) {
    ids ??= idsOf(conjunct, scope, values);
    const pushdown = pushdownOf(conjunct, scope, values);
    if (pushdown) where.push(pushdown);
  }
  return { ids, where };
}

function conjuncts(condition: Condition | undefined): readonly Condition[] {
  if (condition === undefined) return [];
  return condition.kind === "and" ? condition.items.flatMap(conjuncts) : [condition];
}

function idsOf(condition: Condition, scope: Scope, values: Arguments): readonly string[] | undefined {
  const wanted = equalValues(condition, values);
  if (!wanted || wanted.operand.kind !== "field" || scope.bind(wanted.operand).pseudo !== "id") return undefined;
  const ids = wanted.values.filter((value) => typeof value === "string");
  return ids.length === wanted.values.length ? [...new Set(ids)] : undefined;
}

function pushdownOf(condition: Condition, scope: Scope, values: Arguments): Pushdown | undefined {
  const equal = equalValues(condition, values);
  if (equal) return equal.operand.kind === "field" ? equals(scope.bind(equal.operand), equal.values, scope) : undefined;
  const between = boundsOf(condition, values);
  return between && between.operand.kind === "field" ? range(scope.bind(between.operand), between, scope) : undefined;
}

interface Wanted {
  readonly operand: Field | { readonly kind: "call" } | ValueNode;
  readonly values: readonly Value[];
}

/** `f = v`, `f IN (…)`, `f CONTAINS v`. */
function equalValues(condition: Condition, values: Arguments): Wanted | undefined {
  switch (condition.kind) {
    case "compare":
      return condition.operator === "=" ? { operand: condition.left, values: [literal(condition.right, values)] } : undefined;
    case "in":
      return condition.negated ? undefined : { operand: condition.operand, values: literals(condition.values, values) };
    case "contains":
      return containedValues(condition, values);
    default:
      return undefined;
  }
}

function containedValues(condition: Extract<Condition, { kind: "contains" }>, values: Arguments): Wanted | undefined {
  const value = literal(condition.value, values);
  const isOne = !condition.negated && !isList(value) && !isMap(value);
  return isOne ? { operand: condition.operand, values: [[value]] } : undefined;
}

interface Bounds {
  readonly operand: Wanted["operand"];
  readonly from?: Value;
  readonly to?: Value;
}

function boundsOf(condition: Condition, values: Arguments): Bounds | undefined {
  if (condition.kind === "between" && !condition.negated) {
    return { operand: condition.operand, from: literal(condition.low, values), to: literal(condition.high, values) };
  }
  if (condition.kind !== "compare") return undefined;
  const value = literal(condition.right, values);
  if (condition.operator === ">" || condition.operator === ">=") return { operand: condition.left, from: value };
  if (condition.operator === "<" || condition.operator === "<=") return { operand: condition.left, to: value };
  return undefined;
}

/** A value of CONTAINS comes wrapped in a list: it narrows columns that hold several values only. */
function equals(field: BoundField, wanted: readonly Value[], scope: Scope): Pushdown | undefined {
  if (field.pseudo === "day") return dayRange(wanted);
  const kind = onlyKind(field, scope);
  if (!kind || field.pseudo || field.members.length > 0) return undefined;
  const holdsSeveral = kind.type === "list" || kind.type === "map";
  const stored = wanted.map((value) => storedValue(kind, isList(value) && holdsSeveral ? (value[0] ?? null) : value, wanted));
  const known = stored.filter((value) => value !== undefined);
  return known.length === wanted.length && known.length > 0 ? { kind: "equals", column: field.name, values: known.map(toValue) } : undefined;
}

function storedValue(kind: Kind, value: Value, wanted: readonly Value[]): Comparable | undefined {
  if (value === null || kind.type === "any" ) return undefined;
  if (kind.type === "map") return typeof value === "string" ? value : undefined;
  if (kind.type !== "list") return toComparable(kind, value);
  return kind.element === undefined || wanted.some(isWholeList) ? undefined : toComparable(kind.element, value);
}

/** `tags = ["a","b"]` asks for the whole list: no single element stands for it. */
function isWholeList(value: Value): boolean {
  return isList(value) && value.length !== 1;
}

function dayRange(wanted: readonly Value[]): Pushdown | undefined {
  const [day] = wanted;
  const from = typeof day === "string" && wanted.length === 1 ? toComparable(TIME, day) : undefined;
  return typeof from === "number" ? { kind: "range", column: "vtime", from, to: from + DAY_MS - 1 } : undefined;
}

function range(field: BoundField, bounds: Bounds, scope: Scope): Pushdown | undefined {
  const kind = onlyKind(field, scope);
  if (!kind || (kind.type !== "number" && kind.type !== "time") || field.members.length > 0) return undefined;
  const from = bounds.from === undefined ? undefined : limit(kind, bounds.from);
  const to = bounds.to === undefined ? undefined : limit(kind, bounds.to);
  if (from === undefined && to === undefined) return undefined;
  const column = field.name === "mtime" ? "vtime" : field.name;
  return { kind: "range", column, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
}

function limit(kind: Kind, value: Value): number | undefined {
  const result = value === null ? undefined : toComparable(kind, value);
  return typeof result === "number" ? result : undefined;
}

function onlyKind(field: BoundField, scope: Scope): Kind | undefined {
  if (field.pseudo) return scope.source(field).kinds[0];
  const kinds = new Set(scope.columnsNamed(field.name).map(kindOf));
  const [only] = kinds;
  return kinds.size === 1 ? only : undefined;
}
