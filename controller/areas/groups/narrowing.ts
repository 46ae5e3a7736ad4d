import { isInside } from "../../../common/paths.ts";
import { decidingRules, type DataRule } from "../permissions/index.ts";
import type { Rights } from "./definitions.ts";

/**
 * Whether the rights after a change of groups leave out something that they had before. What cannot be compared, such as
 * two row conditions, counts as left out.
 */
export function isNarrower(before: Rights, after: Rights): boolean {
  if (before === after) return false;
  if (before.grants.some((grant) => !after.grants.includes(grant))) return true;
  if (hasLostPath(before.paths, after.paths)) return true;
  // What rules open changes at these paths alone.
  const paths = new Set([...before.data, ...after.data].map((rule) => rule.class));
  return [...paths].some((path) => {
    const left = decidingRules(after, path);
    const had = decidingRules(before, path).filter(({ access }) => access !== "none");
    return had.some((one) => !left.some((rule) => opensAsMuch(rule, one)));
  });
}

function hasLostPath(before: Rights["paths"], after: Rights["paths"]): boolean {
  if (after === undefined) return false;
  return before === undefined || before.some((path) => !after.some((open) => isInside(open, path)));
}

function opensAsMuch(rule: DataRule, wanted: DataRule): boolean {
  if (rule.access === "none" || (wanted.access === "write" && rule.access === "read")) return false;
  return hasRowsOf(rule, wanted) && hasColumnsOf(rule, wanted);
}

function hasRowsOf(rule: DataRule, wanted: DataRule): boolean {
  const conditions = ({ where, anywhere, rowsOnly }: DataRule): string => JSON.stringify([where, anywhere, rowsOnly]);
  return conditions(rule) === conditions({ class: "/", access: "read" }) || conditions(rule) === conditions(wanted);
}

function hasColumnsOf({ hidden = [], shown }: DataRule, wanted: DataRule): boolean {
  const hidesNoMore = hidden.every((column) => wanted.hidden?.includes(column));
  return hidesNoMore && (shown === undefined || (wanted.shown?.every((column) => shown.includes(column)) ?? false));
}
