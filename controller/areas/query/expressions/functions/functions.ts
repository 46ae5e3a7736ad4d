import { AppError } from "../../../../../common/errors.ts";
import { unknownName } from "../../../../../common/text/nearest.ts";
import type { Value } from "../../../../../common/value.ts";
import { counted } from "../../../../../common/text/counted.ts";
import { LIST_FUNCTIONS } from "./lists.ts";
import { NUMBER_FUNCTIONS } from "./numbers.ts";
import { TEXT_FUNCTIONS } from "./texts.ts";
import { TIME_FUNCTIONS } from "./times.ts";
import { AGGREGATES } from "../aggregates/aggregate.ts";
import { DECLARED_OTHERS } from "../declared.ts";
import type { Accepted, FunctionSpec, KindAt } from "./function.ts";
import { type Kind, NUMBER, TEXT, TIME, toComparable, toValue } from "../kind.ts";
import { isList, isMap } from "../literal.ts";
import type { Source } from "../source.ts";
import { THREAD_TEXT_WORK } from "./textwork.ts";

/** The functions of one row by name, in the order of the reference. */
export const FUNCTIONS: Readonly<Record<string, FunctionSpec>> = {
  ...TEXT_FUNCTIONS,
  ...NUMBER_FUNCTIONS,
  ...TIME_FUNCTIONS,
  ...LIST_FUNCTIONS,
};

/** Calls that choose among values instead of computing one. `now` and `ago` are replaced before anything is read. */
const OTHER_NAMES = Object.keys(DECLARED_OTHERS);

/**
 * The source of a call. Throws `AppError("invalid")` for an unknown function, a wrong number of values, or a value that
 * can never have the kind that the function needs. If a value is not set, the result is null.
 */
export function callFunction<R>(name: string, operands: readonly Source<R>[], zone?: string): Source<R> {
  const spec = FUNCTIONS[name];
  if (!spec || !Object.hasOwn(FUNCTIONS, name)) throw unknownFunction(name);
  requireCount(name, spec, operands.length);
  const label = `${name}(${operands.map((operand) => operand.label).join(", ")})`;
  const readers = operands.map((operand, at) => readerOf(operand, acceptedAt(spec, at), name));
  const evaluate = spec.make(
    operands.map(({ constant }) => constant),
    zone,
  );
  const kind = typeof spec.result === "function" ? spec.result(operands) : spec.result;
  const values: Value[] = operands.map(() => null);
  let current: R;
  const kindAt: KindAt = (at) => operands[at]?.kind(current);
  return {
    label,
    kinds: [kind],
    kind: () => kind,
    read(row) {
      for (let at = 0; at < readers.length; at += 1) {
        const value = readers[at]?.(row);
        if (value === undefined || value === null) return null;
        THREAD_TEXT_WORK.charge(row, value);
        values[at] = value;
      }
      current = row;
      const result = evaluate(values, kindAt);
      THREAD_TEXT_WORK.charge(row, result);
      return result;
    },
  };
}

export function unknownFunction(name: string): AppError {
  const among = [...AGGREGATES, ...Object.keys(FUNCTIONS), ...OTHER_NAMES];
  return unknownName(`[Valid] There is no function ${name}: ${among.join(", ")}.`, { name, among, code: "invalid" });
}

function requireCount(name: string, { accepts, least = accepts.length, repeats }: FunctionSpec, count: number): void {
  if (count >= least && (repeats || count <= accepts.length)) return;
  const wanted = repeats
    ? `at least ${counted(least, "value")}`
    : least === accepts.length
      ? counted(least, "value")
      : `${least} to ${accepts.length} values`;
  throw new AppError("invalid", `[Valid] ${name}() takes ${wanted} and was given ${count}.`);
}

function acceptedAt({ accepts }: FunctionSpec, at: number): Accepted {
  return accepts[Math.min(at, accepts.length - 1)] ?? "any";
}

/** Words for accepted kinds in messages, if they differ from their names. */
const WORDS: Readonly<Partial<Record<Accepted, string>>> = { exact: "number", several: "text, list or map" };

const TYPES: Readonly<Record<Accepted, readonly Kind["type"][]>> = {
  any: ["number", "text", "code", "boolean", "time", "date", "list", "map", "any"],
  number: ["number", "any"],
  exact: ["number", "any"],
  text: ["number", "text", "code", "boolean", "time", "date", "any"],
  time: ["time", "date", "number", "any"],
  list: ["list", "any"],
  map: ["map", "any"],
  several: ["list", "map", "text", "code", "any"],
};

function readerOf<R>(source: Source<R>, accepted: Accepted, name: string): (row: R) => Value | undefined {
  const { constant } = source;
  const isPossible =
    constant === undefined
      ? source.kinds.length === 0 || source.kinds.some(({ type }) => TYPES[accepted].includes(type))
      : constant === null || converted(accepted, constant) !== undefined;
  if (!isPossible) {
    const own = constant === undefined ? `is a ${source.kinds[0]?.type ?? ""}` : "is none";
    throw new AppError("invalid", `[Valid] ${name}() needs a ${WORDS[accepted] ?? accepted}: ${source.label} ${own}.`);
  }
  return (row) => {
    const value = source.read(row);
    return value === undefined || value === null ? null : converted(accepted, value);
  };
}

/** The value in the form that the function receives; undefined if it is not of that kind. */
function converted(accepted: Accepted, value: Value): Value | undefined {
  switch (accepted) {
    case "any":
      return value;
    case "number": {
      const number = toComparable(NUMBER, value);
      return number === undefined ? undefined : Number(number);
    }
    case "exact": {
      const number = toComparable(NUMBER, value);
      return number === undefined ? undefined : toValue(number);
    }
    case "text": {
      const text = value === null ? undefined : toComparable(TEXT, value);
      return typeof text === "string" ? text : undefined;
    }
    case "time": {
      const timeMs = toComparable(TIME, value);
      return typeof timeMs === "number" ? timeMs : undefined;
    }
    case "list":
      return isList(value) ? value : undefined;
    case "map":
      return isMap(value) ? value : undefined;
    case "several":
      return isList(value) || isMap(value) || typeof value === "string" ? value : undefined;
  }
}
