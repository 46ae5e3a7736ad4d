import type { Value } from "../../../../../common/value.ts";
import type { FunctionSpec } from "./function.ts";
import { charactersOf } from "./texts.ts";
import { ANY, BOOLEAN, type Kind, NUMBER } from "../kind.ts";
import { isList, isMap } from "../literal.ts";
import { canonical } from "../questions.ts";

export const LIST_FUNCTIONS: Readonly<Record<string, FunctionSpec>> = {
  size: {
    accepts: ["several"],
    result: NUMBER,
    example: "size(split('a,b', ','))",
    about: "How many elements a set or list has, entries a map, characters a text.",
    make:
      () =>
      ([value = null]) =>
        isList(value) ? value.length : isMap(value) ? Object.keys(value).length : charactersOf(String(value)),
  },
  member: {
    accepts: ["several", "any"],
    result: ([first]) => elementKind(first?.kinds),
    example: "member(split('a,b', ','), 2)",
    about: "The value of a map by its key, or the element of a list by its place, counted from 1.",
    make:
      () =>
      ([value = null, key = null]) =>
        memberOf(value, key),
  },
  contains: {
    accepts: ["several", "any"],
    result: BOOLEAN,
    example: "contains('disk full', 'full')",
    about: "Whether a set or list has that element, a map that key, a text that part.",
    make:
      () =>
      ([value = null, wanted = null]) =>
        holds(value, wanted),
  },
};

function elementKind(kinds: readonly Kind[] = []): Kind {
  const [only] = kinds;
  return kinds.length === 1 ? (only?.element ?? ANY) : ANY;
}

function memberOf(value: Value, key: Value): Value {
  if (isList(value)) return value[Number(key) - 1] ?? null;
  if (!isMap(value)) return null;
  const name = String(key);
  return Object.hasOwn(value, name) ? (value[name] ?? null) : null;
}

function holds(value: Value, wanted: Value): boolean {
  if (isMap(value)) return Object.hasOwn(value, String(wanted));
  if (!isList(value)) return typeof wanted !== "object" && String(value).includes(String(wanted));
  const name = canonical(wanted);
  return value.some((element) => canonical(element) === name || String(element) === wanted);
}
