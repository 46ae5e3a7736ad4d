import { AppError } from "../../../common/errors.ts";
import { isInside } from "../../../common/paths.ts";
import { decidingRules, isUnrestricted } from "./access.ts";
import type { DataRule, Principal } from "./types.ts";

/** Rights of a user, a group, an API permission or a role. Without `paths`, all paths are open. */
export type GivenRights = Pick<Principal, "grants" | "data" | "paths">;

/**
 * True if the holder has all rights in `wanted`. Rights that cannot be compared, such as two different row conditions,
 * count as missing.
 */
export function holds(holder: GivenRights, wanted: GivenRights): boolean {
  if (!wanted.grants.every((grant) => hasGrant(holder, grant))) return false;
  return hasPaths(holder.paths, wanted.paths) && hasData(holder, wanted);
}

/**
 * Throws `AppError("denied")` unless the principal has all rights in `wanted`. Every call that gives rights, or changes
 * a user with rights, checks this. So no user gains rights through another user, a group or a tenant. `what` names the
 * subject in the error.
 */
export function requireHolding(principal: Principal, wanted: GivenRights, what = ""): void {
  if (holds(principal, wanted)) return;
  const more = what === "" ? "" : `: ${what} opens more`;
  throw new AppError("denied", `${principal.user} may not give or change rights beyond the own ones${more}.`);
}

/** Throws `AppError("denied")` for a token with a part of its user's rights: such a token cannot change rights. */
export function requireNoPartToken(principal: Principal): void {
  if (principal.byToken !== "part") return;
  const text = `This changes rights, which a token with a part of the rights of ${principal.user} may not: sign in, or use a token with all of them.`;
  throw new AppError("denied", text);
}

/** True if the grants include this one, directly or by `*`. */
export function hasGrant({ grants }: Pick<Principal, "grants">, grant: string): boolean {
  const [area = "", verb = ""] = grant.split(":");
  const verbs = verb === "*" ? ["read", "write", "run"] : [verb];
  return (
    grants.includes(`${area}:*`) ||
    verbs.every((one) => grants.includes(`*:${one}`) || grants.includes(`${area}:${one}`))
  );
}

function hasPaths(open: Principal["paths"], wanted: Principal["paths"]): boolean {
  if (open === undefined) return true;
  return wanted?.every((path) => open.some((one) => isInside(one, path))) ?? false;
}

function hasData(holder: GivenRights, wanted: GivenRights): boolean {
  // Check at the class paths of all rules: between these paths, the access does not change.
  const paths = new Set([...holder.data, ...wanted.data].map((rule) => rule.class));
  return [...paths].every((path) => {
    // To define classes, one group must open the whole tree. The same rights from several groups together are less.
    if (isUnrestricted(wanted, path) && !isUnrestricted(holder, path)) return false;
    const own = decidingRules(holder, path);
    const asked = decidingRules(wanted, path).filter(({ access }) => access !== "none");
    return asked.every((one) => own.some((rule) => opensAsMuch(rule, one)));
  });
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
