import { AppError } from "../../../../common/errors.ts";
import type { CompareOperator, TextOperator } from "../../../../common/mql/index.ts";
import { wildcard } from "../../../../common/text/wildcard.ts";
import {
  type WantedText,
  wantedNearly,
  wantedPhrase,
  wantedPrefix,
  wantedWords,
} from "../../../../common/text/words.ts";
import type { Value } from "../../../../common/value.ts";
import { ANY, compare, type Comparable, type Kind, TEXT, toComparable } from "./kind.ts";
import { isList, isMap } from "./literal.ts";

/** Test of a value that is set. */
export type Test = (value: Value) => boolean;

/** A condition on the value on its left, without the kind of that value. */
export type Question =
  | { readonly kind: "compare"; readonly operator: CompareOperator; readonly value: Value }
  /**
   * `areFound`: values that a SELECT answered. Those that cannot equal a value of the kind are ignored; among written
   * values they are errors.
   */
  | { readonly kind: "in"; readonly values: readonly Value[]; readonly areFound?: true }
  | { readonly kind: "like"; readonly pattern: Value }
  | { readonly kind: "between"; readonly low: Value; readonly high: Value }
  | { readonly kind: "contains"; readonly value: Value }
  | { readonly kind: "textMatch"; readonly operator: TextOperator; readonly value: Value };

/** The test for values of one kind. `AppError("invalid")` if values of the kind cannot be asked this. */
export function testFor(question: Question, kind: Kind, label: string): Test {
  switch (question.kind) {
    case "compare":
      return compareTest(question.operator, question.value, { kind, label });
    case "in":
      return inTest(question.areFound ? fitting(question.values, kind) : question.values, { kind, label });
    case "like":
      return likeTest(question.pattern, { kind, label });
    case "between":
      return betweenTest(question, { kind, label });
    case "contains":
      return containsTest(question.value, { kind, label });
    case "textMatch":
      return wordsTest(wantedText(question.operator, question.value), { kind, label });
  }
}

interface Subject {
  readonly kind: Kind;
  readonly label: string;
}

const ORDERED: Readonly<Record<CompareOperator, (order: number) => boolean>> = {
  "=": (order) => order === 0,
  "!=": (order) => order !== 0,
  "<": (order) => order < 0,
  "<=": (order) => order <= 0,
  ">": (order) => order > 0,
  ">=": (order) => order >= 0,
};

function compareTest(operator: CompareOperator, value: Value, subject: Subject): Test {
  const isEquality = operator === "=" || operator === "!=";
  if (isList(value) || isMap(value) || subject.kind.type === "list" || subject.kind.type === "map") {
    if (!isEquality) throw invalid(`${subject.label} has no order: it is a ${subject.kind.type}`);
    const same = sameTest(value, subject);
    return operator === "=" ? same : (other) => !same(other);
  }
  const right = comparable(subject, value);
  const holds = ORDERED[operator];
  return scalarTest(subject.kind, (left) => holds(compare(left, right)));
}

/**
 * A list or map as `value`: the test is true for an equal whole. Any other value: the test is true for a set, list or
 * map that has it as an element or key.
 */
function sameTest(value: Value, { kind, label }: Subject): Test {
  if (isList(value) || isMap(value)) {
    const wanted = canonical(value);
    return (other) => canonical(other) === wanted;
  }
  return kind.type === "map" ? keyTest(value) : elementTest(value, { kind, label });
}

function inTest(values: readonly Value[], subject: Subject): Test {
  if (subject.kind.type === "list" || subject.kind.type === "map") {
    const tests = values.map((value) => sameTest(value, subject));
    return (value) => tests.some((test) => test(value));
  }
  const wanted = new Set<Comparable>(
    values.filter((value) => value !== null).map((value) => comparable(subject, value)),
  );
  return scalarTest(subject.kind, (value) => wanted.has(value));
}

/** The values that a value of the kind, or one of its elements, can equal. */
function fitting(values: readonly Value[], kind: Kind): readonly Value[] {
  const of = kind.type === "list" ? (kind.element ?? ANY) : kind;
  return values.filter((value) => {
    const isSeveral = isList(value) || isMap(value);
    if (kind.type === "map") return !isList(value);
    return isSeveral ? kind.type === "list" && isList(value) : value !== null && toComparable(of, value) !== undefined;
  });
}

function betweenTest(question: { readonly low: Value; readonly high: Value }, subject: Subject): Test {
  const low = comparable(subject, question.low);
  const high = comparable(subject, question.high);
  return scalarTest(subject.kind, (value) => compare(value, low) >= 0 && compare(value, high) <= 0);
}

function likeTest(pattern: Value, { kind, label }: Subject): Test {
  if (typeof pattern !== "string" && typeof pattern !== "number")
    throw invalid(`the pattern of ${label} LIKE is no text`);
  const matches = wildcard(likePattern(String(pattern)));
  if (kind.type === "list") return (value) => isList(value) && value.some((element) => matchesScalar(element, matches));
  if (kind.type === "map") return (value) => isMap(value) && Object.keys(value).some(matches);
  return (value) => matchesScalar(value, matches);
}

/**
 * Replaces `%`, the wildcard of SQL, by `*`. In a pattern with a `*`, `%` is an ordinary character, so every text can
 * be matched.
 */
export function likePattern(pattern: string): string {
  return pattern.includes("*") ? pattern : pattern.replaceAll("%", "*");
}

const WANTED: Readonly<Record<TextOperator, (text: string) => WantedText>> = {
  MATCH: wantedWords,
  PHRASE: wantedPhrase,
  PREFIX: wantedPrefix,
  FUZZY: wantedNearly,
};

/** The text that a full-text condition looks for. */
export function wantedText(operator: TextOperator, value: Value): WantedText {
  const text = value === null ? undefined : toComparable(TEXT, value);
  if (typeof text !== "string") throw invalid(`${operator} needs a text`);
  return WANTED[operator](text);
}

/** True if the value has the words; for a set or list, if one element has them; for a map, if one value has them. */
function wordsTest({ isIn }: WantedText, { kind, label }: Subject): Test {
  const hasIt = (value: Value | undefined): boolean => typeof value === "string" && isIn(value);
  switch (kind.type) {
    case "text":
    case "code":
      return hasIt;
    case "list":
      return (value) => isList(value) && value.some(hasIt);
    case "map":
      return (value) => isMap(value) && Object.values(value).some(hasIt);
    case "any":
      return (value) => hasIt(value) || (isList(value) && value.some(hasIt));
    default:
      throw invalid(`${label} has no words: it is a ${kind.type}`);
  }
}

function containsTest(value: Value, subject: Subject): Test {
  if (isList(value)) {
    const tests = value.map((element) => containsTest(element, subject));
    return (other) => tests.every((test) => test(other));
  }
  if (subject.kind.type === "map") return isMap(value) ? entriesTest(value) : keyTest(value);
  if (subject.kind.type === "list") return elementTest(value, subject);
  return substringTest(value, subject.label);
}

function substringTest(value: Value, label: string): Test {
  const part = toComparable(TEXT, value);
  if (typeof part !== "string") throw invalid(`${label} CONTAINS needs a text`);
  return (other) =>
    isList(other) ? other.some((element) => element === value) : String(toComparable(TEXT, other) ?? "").includes(part);
}

function elementTest(value: Value, { kind, label }: Subject): Test {
  const element = kind.element ?? ANY;
  const wanted = comparable({ kind: element, label }, value);
  return (other) => isList(other) && other.some((item) => isEqual(element, item, wanted));
}

function isEqual(kind: Kind, value: Value, wanted: Comparable): boolean {
  const own = value === null ? undefined : toComparable(kind, value);
  return own !== undefined && compare(own, wanted) === 0;
}

function keyTest(value: Value): Test {
  const key = String(toComparable(TEXT, value) ?? "");
  return (other) => isMap(other) && Object.hasOwn(other, key);
}

function entriesTest(entries: { readonly [key: string]: Value }): Test {
  const wanted = Object.entries(entries).map(([key, value]) => [key, canonical(value)] as const);
  return (other) =>
    isMap(other) &&
    wanted.every(([key, value]) => Object.hasOwn(other, key) && canonical(other[key] ?? null) === value);
}

function scalarTest(kind: Kind, holds: (value: Comparable) => boolean): Test {
  return (value) => {
    const own = toComparable(kind, value);
    return own !== undefined && holds(own);
  };
}

function matchesScalar(value: Value, matches: (text: string) => boolean): boolean {
  const text = toComparable(TEXT, value);
  return typeof text === "string" && matches(text);
}

function comparable({ kind, label }: Subject, value: Value): Comparable {
  const result = value === null ? undefined : toComparable(kind, value);
  if (result === undefined) throw invalid(`${JSON.stringify(value)} is no value for ${label}, which is a ${kind.type}`);
  return result;
}

/** A text that is the same for equal values. The order of list elements counts, that of map keys does not. */
export function canonical(value: Value): string {
  if (isList(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isMap(value)) return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key] ?? null)}`).join(",")}}`;
}

/** A key of a map that is the same for equal values only. Scalars are their own key, which costs nothing. */
export type Identity = string | number | boolean | null;

const MADE = "\0";

export function identity(value: Value): Identity {
  if (typeof value === "string") return value.startsWith(MADE) ? `${MADE}text ${value}` : value;
  return typeof value === "object" && value !== null ? `${MADE}${canonical(value)}` : value;
}

function invalid(complaint: string): AppError {
  return new AppError("invalid", `[Valid] ${complaint}.`);
}
