import { anyOnLeft, type Condition, type Contains, isAny, type Operand } from "../../../../common/mql/index.ts";
import { SEARCH_WORDS_MAX } from "../../../../common/limits.ts";
import { tokenPatterns, type WantedText } from "../../../../common/text/words.ts";
import type { Value } from "../../../../common/value.ts";
import { branchesOf, hasWords, type Pushdown, TAGS_COLUMN } from "../../objects/index.ts";
import type { BoundField } from "../expressions/fields.ts";
import { type Comparable, type Kind, kindOf, TIME, toComparable, toValue } from "../expressions/kind.ts";
import { type Arguments, isList, isMap, listed, literal } from "../expressions/literal.ts";
import { about } from "../expressions/placing.ts";
import { likePattern, wantedText } from "../expressions/questions.ts";
import type { Scope } from "./names/scope.ts";

/**
 * The parts of a condition that can narrow a read. Every row is still checked against the whole condition afterwards.
 */
export interface Narrowing {
  readonly ids: readonly string[] | undefined;
  /** Paths of the only classes whose objects can pass. Absent: objects of every class can. */
  readonly classes: ReadonlySet<string> | undefined;
  readonly where: readonly Pushdown[];
}

const DAY_MS = 86_400_000;

export function narrow(condition: Condition | undefined, scope: Scope, values: Arguments): Narrowing {
  const where: Pushdown[] = [];
  let ids: readonly string[] | undefined;
  let classes: ReadonlySet<string> | undefined;
  for (const conjunct of conjuncts(condition)) {
    const equal = about(conjunct.span, () => equalValues(conjunct, scope, values));
    ids ??= textsOf("id", equal);
    classes ??= textsOf("class", equal) && new Set(textsOf("class", equal));
    const pushdown = equal
      ? equals(equal.field, equal.values, scope)
      : about(conjunct.span, () => rangeOf(conjunct, scope, values));
    if (pushdown) where.push(pushdown);
    else if (!equal) where.push(...about(conjunct.span, () => wordsOf(conjunct, scope, values)));
  }
  return { ids, classes, where };
}

/** The conditions joined by AND, including those in nested ANDs. */
export function conjuncts(condition: Condition | undefined): readonly Condition[] {
  if (condition === undefined) return [];
  return condition.kind === "and" ? condition.items.flatMap(conjuncts) : [condition];
}

/** The conditions joined by AND; undefined without any. */
export function allOf(items: readonly Condition[]): Condition | undefined {
  const [first] = items;
  return items.length <= 1 || !first ? first : { kind: "and", items, span: first.span };
}

function textsOf(pseudo: "id" | "class", wanted: Wanted | undefined): readonly string[] | undefined {
  if (wanted?.field.pseudo !== pseudo) return undefined;
  const texts = wanted.values.filter((value) => typeof value === "string");
  return texts.length === wanted.values.length ? [...new Set(texts)] : undefined;
}

function rangeOf(condition: Condition, scope: Scope, values: Arguments): Pushdown | undefined {
  const between = boundsOf(condition, values);
  return between && between.operand.kind === "field"
    ? range(scope.bind(between.operand, values), between, scope)
    : undefined;
}

/** Pushdowns for a condition on words of a text column: the object must have these words, too. */
function wordsOf(condition: Condition, scope: Scope, values: Arguments): readonly Pushdown[] {
  if (condition.kind !== "textMatch" && condition.kind !== "like") return [];
  if (condition.negated || condition.operand.kind !== "field") return [];
  const field = scope.bind(condition.operand, values);
  const columns = scope.columnsNamed(field.name);
  if (field.pseudo || field.members.length > 0 || !columns.every((column) => hasWords(column.type))) return [];
  return condition.kind === "like"
    ? wordPushdowns([likeWords(literal(condition.pattern, values))])
    : wordPushdowns([wantedText(condition.operator, literal(condition.value, values))]);
}

function likeWords(pattern: Value): Pick<WantedText, "indexed" | "patterns"> {
  const found = typeof pattern === "string" ? tokenPatterns(likePattern(pattern)) : [];
  return {
    indexed: found.filter((one) => !one.includes("*")),
    patterns: found.filter((one) => one.includes("*")),
  };
}

/** Pushdowns for words that an object must all have. */
export function wordPushdowns(wanted: readonly Pick<WantedText, "indexed" | "patterns">[]): readonly Pushdown[] {
  const words = wanted.flatMap(({ indexed }) => indexed);
  const patterns = new Set(wanted.flatMap((one) => one.patterns).slice(0, SEARCH_WORDS_MAX));
  return [
    ...(words.length > 0 ? [{ kind: "words", words } as const] : []),
    ...Array.from(patterns, (pattern) => ({ kind: "pattern", pattern }) as const),
  ];
}

interface Wanted {
  readonly field: BoundField;
  readonly values: readonly Value[];
}

/**
 * The field and values of `f = v`, `f IN (…)`, `f CONTAINS v`, a condition for a branch of tags, or several of these
 * about one field joined by OR.
 */
function equalValues(condition: Condition, scope: Scope, values: Arguments): Wanted | undefined {
  switch (condition.kind) {
    case "compare":
      return condition.operator === "="
        ? wantedAmong(condition.left, [literal(condition.right, values)], { scope, values })
        : undefined;
    case "relate": {
      const turned = anyOnLeft(condition);
      return turned.kind === "compare" ? equalValues(turned, scope, values) : undefined;
    }
    case "in":
      return condition.negated
        ? undefined
        : wantedAmong(condition.operand, listed(condition, values), { scope, values });
    case "contains":
      return containedValues(condition, scope, values);
    case "like":
      return belowTag(condition, scope, values);
    case "or":
      return eitherOf(condition.items.map((item) => equalValues(item, scope, values)));
    default:
      return undefined;
  }
}

type Like = Extract<Condition, { kind: "like" }>;

/** `tags LIKE 'os/linux/*'`: the objects with a tag in that branch. */
function belowTag(condition: Like, scope: Scope, values: Arguments): Wanted | undefined {
  const pattern = literal(condition.pattern, values);
  if (condition.negated || typeof pattern !== "string" || !/^[^*%]*\/[*%]$/.test(pattern)) return undefined;
  const branch = pattern.slice(0, -1);
  const wanted =
    branchesOf(branch).at(-1) === branch ? wantedOf(condition.operand, [[branch]], { scope, values }) : undefined;
  return wanted?.field.name === TAGS_COLUMN && wanted.field.members.length === 0 ? wanted : undefined;
}

function wantedOf(
  operand: Operand,
  wanted: readonly Value[],
  names: { readonly scope: Scope; readonly values: Arguments },
): Wanted | undefined {
  return operand.kind === "field" ? { field: names.scope.bind(operand, names.values), values: wanted } : undefined;
}

/** The field and values; also for `any(f)` of a set or list, because indexes contain its elements. */
function wantedAmong(
  operand: Operand,
  wanted: readonly Value[],
  names: Parameters<typeof wantedOf>[2],
): Wanted | undefined {
  if (!isAny(operand)) return wantedOf(operand, wanted, names);
  const [whole] = operand.operands;
  const own = whole && wantedOf(whole, [], names);
  const isOfList = own !== undefined && onlyKind(own.field, names.scope)?.type === "list";
  return isOfList ? { field: own.field, values: wanted.map((value) => [value]) } : undefined;
}

function eitherOf(choices: readonly (Wanted | undefined)[]): Wanted | undefined {
  const [first] = choices;
  if (!first || choices.some((choice) => choice?.field.label !== first.field.label)) return undefined;
  return { field: first.field, values: choices.flatMap((choice) => choice?.values ?? []) };
}

function containedValues(condition: Contains, scope: Scope, values: Arguments): Wanted | undefined {
  const value = literal(condition.value, values);
  const isOne = !condition.negated && !isList(value) && !isMap(value);
  return isOne ? wantedOf(condition.operand, [[value]], { scope, values }) : undefined;
}

interface Bounds {
  readonly operand: Operand;
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

/**
 * Narrows a read to objects whose field equals one of the values. Undefined if the field has another kind than the
 * values.
 */
export function equalTo(
  field: BoundField,
  values: readonly Value[],
  as: { readonly scope: Scope; readonly kind: Kind },
): Pushdown | undefined {
  return onlyKind(field, as.scope) === as.kind ? equals(field, values, as.scope) : undefined;
}

/** A value of CONTAINS is wrapped in a list: it narrows only columns that hold several values. */
function equals(field: BoundField, wanted: readonly Value[], scope: Scope): Pushdown | undefined {
  if (field.pseudo === "day") return dayRange(wanted);
  const kind = onlyKind(field, scope);
  if (!kind || field.pseudo || field.members.length > 0) return undefined;
  const holdsSeveral = kind.type === "list" || kind.type === "map";
  const stored = wanted.map((value) =>
    storedValue(kind, isList(value) && holdsSeveral ? (value[0] ?? null) : value, wanted),
  );
  const known = stored.filter((value) => value !== undefined);
  return known.length === wanted.length && known.length > 0
    ? { kind: "equals", column: field.name, values: known.map(toValue) }
    : undefined;
}

function storedValue(kind: Kind, value: Value, wanted: readonly Value[]): Comparable | undefined {
  if (value === null || kind.type === "any") return undefined;
  if (kind.type === "map") return typeof value === "string" ? value : undefined;
  if (kind.type !== "list") return toComparable(kind, value);
  return kind.element === undefined || wanted.some(isWholeList) ? undefined : toComparable(kind.element, value);
}

/** `tags = ["a","b"]` compares the whole list, so no single element can be used. */
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
