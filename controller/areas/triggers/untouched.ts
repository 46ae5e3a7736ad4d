import { isDeepStrictEqual } from "node:util";
import type { Row, Value } from "../../../common/value.ts";

/**
 * Restores null values that Lua lost. A Lua table cannot hold null, so a list with null changes on its way through Lua.
 * Values that the script did not change are returned as they were before.
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

/** The value as it comes back from Lua. A list with a gap, and an empty list, become objects with positions from 1. */
function asInLua(value: Value): Value {
  if (typeof value !== "object" || value === null) return value;
  const shift = Array.isArray(value) ? 1 : 0;
  const entries = Object.entries(value as Row)
    .filter(([, entry]) => entry !== null)
    .map(([name, entry]) => [shift === 1 ? String(Number(name) + 1) : name, asInLua(entry)] as const);
  const isList = shift === 1 && entries.length > 0 && entries.every(([place], at) => place === String(at + 1));
  return isList ? entries.map(([, entry]) => entry) : Object.fromEntries(entries);
}
