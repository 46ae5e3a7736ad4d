import { AppError } from "../../../../common/errors.ts";
import type { Value } from "../../../../common/value.ts";
import { isSeveral, NUMBER, TIME, toComparable, toValue } from "./kind.ts";
import type { Source } from "./source.ts";

/** Signs between two numbers; `+` and `-` also between a time and milliseconds, `-` between two times. */
export type Sign = "+" | "-" | "*" | "/";

type Numeric = number | bigint;

/**
 * The source of `left sign right`. Integers are exact if both sides are integers and the sign is not `/`. The value is
 * null without a result: for a side that is not a number, a division by 0, or a result beyond a double. Throws
 * `AppError("invalid")` if a side can be neither a number nor a time in any class.
 */
export function arithmetic<R>(sign: Sign, left: Source<R>, right: Source<R>): Source<R> {
  const times = [isTime(left) || isTimeText(left, right, sign), isTime(right) || isTimeText(right, left, sign)];
  const kind = times[0] === times[1] || sign === "*" || sign === "/" ? NUMBER : TIME;
  const isAllowed = (!times[0] && !times[1]) || sign === "-" || (sign === "+" && !(times[0] && times[1]));
  if (!isAllowed || (times[1] && !times[0] && sign === "-"))
    throw invalid(
      `${left.label} ${sign} ${right.label}: of times there are differences, and times so many milliseconds before and behind`,
    );
  const read = [
    numeric(left, { sign, isTime: times[0] === true }),
    numeric(right, { sign, isTime: times[1] === true }),
  ] as const;
  // Next to a time, a column that no class has might be a time or a number. Its value is null in both cases.
  const isOpen =
    kind === TIME && [left, right].some(({ kinds, constant }) => kinds.length === 0 && constant === undefined);
  return {
    label: `${left.label} ${sign} ${right.label}`,
    kinds: isOpen ? [] : [kind],
    kind: () => kind,
    read(row) {
      const first = read[0](row);
      const second = first === undefined ? undefined : read[1](row);
      if (first === undefined || second === undefined) return null;
      return numberValue(calculate(sign, first, second));
    },
  };
}

/** `-x`. */
export function negative<R>(source: Source<R>): Source<R> {
  const read = numeric(source, { sign: "-", isTime: false });
  return {
    label: `-(${source.label})`,
    kinds: [NUMBER],
    kind: () => NUMBER,
    read(row) {
      const value = read(row);
      return value === undefined ? null : numberValue(-value);
    },
  };
}

/** A number in the form of a row value. An integer that a double does not hold is a text; a missing number is null. */
export function numberValue(number: Numeric | undefined): Value {
  if (typeof number === "number") return Number.isFinite(number) ? number : null;
  if (number === undefined) return null;
  const double = Number(number);
  return Number.isSafeInteger(double) ? double : toValue(number);
}

function calculate(sign: Sign, left: Numeric, right: Numeric): Numeric | undefined {
  if (sign === "/") return Number(right) === 0 ? undefined : Number(left) / Number(right);
  if (typeof left === "number" && typeof right === "number") {
    const result = sign === "+" ? left + right : sign === "-" ? left - right : left * right;
    const isExact = Number.isSafeInteger(result) || !Number.isInteger(left) || !Number.isInteger(right);
    return isExact || !Number.isSafeInteger(left) || !Number.isSafeInteger(right)
      ? result
      : exactly(sign, BigInt(left), BigInt(right));
  }
  const [first, second] = [integer(left), integer(right)];
  if (first !== undefined && second !== undefined) return exactly(sign, first, second);
  return calculate(sign, Number(left), Number(right));
}

function exactly(sign: Exclude<Sign, "/">, left: bigint, right: bigint): bigint {
  return sign === "+" ? left + right : sign === "-" ? left - right : left * right;
}

function integer(value: Numeric): bigint | undefined {
  return typeof value === "bigint" ? value : Number.isSafeInteger(value) ? BigInt(value) : undefined;
}

/** True if the source has times or dates, and otherwise only lists and maps. */
function isTime<R>(source: Source<R>): boolean {
  const single = source.kinds.filter((kind) => !isSeveral(kind));
  return single.length > 0 && single.every(({ type }) => type === "time" || type === "date");
}

/** True for a text that is read as a time because a time is subtracted from it, or it from a time. */
function isTimeText<R>(source: Source<R>, other: Source<R>, sign: Sign): boolean {
  const { constant } = source;
  return sign === "-" && isTime(other) && typeof constant === "string" && toComparable(TIME, constant) !== undefined;
}

function numeric<R>(
  source: Source<R>,
  as: { readonly sign: Sign; readonly isTime: boolean },
): (row: R) => Numeric | undefined {
  const { sign } = as;
  const kind = as.isTime ? TIME : NUMBER;
  const types = kind === TIME ? ["time", "date"] : ["number", "any"];
  const isPossible =
    source.constant === undefined || source.constant === null
      ? source.constant === null || source.kinds.length === 0 || source.kinds.some(({ type }) => types.includes(type))
      : toComparable(kind, source.constant) !== undefined;
  if (!isPossible) throw invalid(`${source.label} ${sign}: ${needs(source)}`);
  return (row) => {
    const value = source.read(row);
    const number = value === undefined || value === null ? undefined : toComparable(kind, value);
    return typeof number === "number" || typeof number === "bigint" ? number : undefined;
  };
}

function needs<R>(source: Source<R>): string {
  const [kind] = source.kinds;
  const hint = kind?.type === "text" ? "; || puts texts together, cast(x as double) makes a number of one" : "";
  return `it is no number but ${source.constant === undefined ? (kind?.type ?? "nothing") : "a text"}${hint}`;
}

function invalid(complaint: string): AppError {
  return new AppError("invalid", `[Valid] ${complaint}.`);
}
