import { isDeepStrictEqual } from "node:util";
import type { Row, Value } from "../../../common/value.ts";

/**
 * The object as a text of Lua left it, with what that text did not touch as it was: a table of Lua has no null, so that
 * lists with one would lose it.
 */
export function withUntouched(before: Row, after: Row): Row {
  const untouched = Object.entries(before).filter(
    ([name, value]) => holdsNull(value) && isDeepStrictEqual(asInLua(value), after[name]),
  );
  return { ...after, ...Object.fromEntries(untouched) };
}

function holdsNull(value: Value): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).some((entry: Value) => entry === null || holdsNull(entry));
}

/** As the JSON of Lua writes it: a list with a gap is an object of places from 1, and so is one without entries. */
function asInLua(value: Value): Value {
  if (typeof value !== "object" || value === null) return value;
  const shift = Array.isArray(value) ? 1 : 0;
  const entries = Object.entries(value as Row)
    .filter(([, entry]) => entry !== null)
    .map(([name, entry]) => [shift === 1 ? String(Number(name) + 1) : name, asInLua(entry)] as const);
  const isList = shift === 1 && entries.length > 0 && entries.every(([place], at) => place === String(at + 1));
  return isList ? entries.map(([, entry]) => entry) : Object.fromEntries(entries);
}
