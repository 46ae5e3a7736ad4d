import type { Value } from "../value.ts";
import type { Comparison } from "./ast.ts";

const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
/** Longer texts are not read as numbers. */
const NUMBER_MAX_CHARACTERS = 400;

/**
 * The number itself, or the number that a text spells; `null` for anything else and for a number that is not finite.
 */
export function toNumber(value: Value): number | null {
  if (typeof value === "number") return value;
  if (typeof value !== "string" || value.length > NUMBER_MAX_CHARACTERS || !NUMBER.test(value)) return null;
  return finite(Number(value));
}

export function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

/** True for every value except `null`, `false`, 0 and the empty text. */
export function holds(value: Value): boolean {
  return value !== null && value !== false && value !== 0 && value !== "";
}

/**
 * Compares values of the same type directly, a number and a text as numbers, a boolean and a text as texts. `is`
 * requires the same type. All other pairs are unequal and have no order; so are lists and objects.
 */
export function compares(operator: Exclude<Comparison, "contains">, left: Value, right: Value): boolean {
  switch (operator) {
    case "is":
      return isSame(left, right);
    case "isnot":
      return !isSame(left, right);
    case "=":
      return equals(left, right);
    case "!=":
      return !equals(left, right);
    default:
      return isOrdered(operator, left, right);
  }
}

/** `null` equals only `null`. A missing member is `null`, too. */
export function equals(left: Value, right: Value): boolean {
  if (typeof left === typeof right) return isSame(left, right);
  if (typeof left === "boolean") return String(left) === right;
  if (typeof right === "boolean") return String(right) === left;
  return numbers(left, right, (one, other) => one === other);
}

function isSame(left: Value, right: Value): boolean {
  return left === right && (left === null || typeof left !== "object");
}

function isOrdered(operator: ">" | "<" | ">=" | "<=", left: Value, right: Value): boolean {
  if (typeof left === "string" && typeof right === "string") return inOrder(operator, left, right);
  return numbers(left, right, (one, other) => inOrder(operator, one, other));
}

function numbers(left: Value, right: Value, decide: (left: number, right: number) => boolean): boolean {
  if (typeof left !== "number" && typeof right !== "number") return false;
  const [one, other] = [toNumber(left), toNumber(right)];
  return one !== null && other !== null && decide(one, other);
}

function inOrder<T extends string | number>(operator: ">" | "<" | ">=" | "<=", left: T, right: T): boolean {
  if (operator === ">") return left > right;
  if (operator === "<") return left < right;
  return operator === ">=" ? left >= right : left <= right;
}
