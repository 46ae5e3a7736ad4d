import { AppError } from "../../../common/errors.ts";
import { isInside } from "../../../common/paths.ts";
import { isUnrestricted } from "./access.ts";
import { allows } from "./grants.ts";
import type { Permission } from "./names.ts";
import type { DataRule, Principal } from "./types.ts";

interface Role {
  readonly grants: readonly string[];
  readonly data: readonly DataRule[];
}

/** The roles that exist in every tenant. */
export const ROLES = {
  administrator: { grants: ["*:read", "*:write", "*:run"], data: [{ class: "/", access: "write" }] },
  viewer: { grants: ["*:read"], data: [{ class: "/", access: "read" }] },
} as const satisfies Record<string, Role>;

export type RoleName = keyof typeof ROLES;

/** The principal of the controller itself in a tenant, with all rights. */
export function systemPrincipal(tenant: string, ospace: string, traceparent: string): Principal {
  return { tenant, ospace, user: "system", groups: [], ...ROLES.administrator, traceparent };
}

/**
 * The same user, limited to reading. Grants and data rules are reduced to reading, so every later check refuses changes
 * and runs. `reason` is the text of the error.
 */
export function readingOnly(principal: Principal, reason: string): Principal {
  return {
    ...principal,
    grants: principal.grants.flatMap(readingPart),
    data: principal.data.map((rule) => (rule.access === "write" ? { ...rule, access: "read" } : rule)),
    readsOnlyBecause: reason,
  };
}

function readingPart(grant: string): readonly string[] {
  const [area, verb] = grant.split(":");
  return verb === "read" || verb === "*" ? [`${area}:read`] : [];
}

/**
 * Throws `AppError("denied")` for a read-only principal. For changes that need no permission, such as ending one's own
 * session.
 */
export function requireMayChange(principal: Principal): void {
  if (principal.readsOnlyBecause !== undefined) throw new AppError("denied", principal.readsOnlyBecause);
}

/**
 * The same user with an open duty, that is, a sign-in requirement to fulfil first, and without any rights. The actions
 * that fulfil the duty need no permission.
 */
export function owing(principal: Principal, duty: NonNullable<Principal["owes"]>): Principal {
  return { ...principal, grants: [], data: [], paths: [], groups: [], owes: duty };
}

/** Throws `AppError("denied")` for a user with an open duty. For actions that need no permission. */
export function requireNoDuty({ owes, user }: Pick<Principal, "owes" | "user">): void {
  if (owes === undefined) return;
  throw new AppError("denied", `${dutyText(user, owes)}.`, { details: { owes } });
}

/**
 * Like `requireNoDuty`, for a program that signs in by a token or by Basic. The code `action_required` tells the
 * program that a person must act, and that no permission is missing.
 */
export function requireNoDutyOfProgram({ owes, user }: Pick<Principal, "owes" | "user">): void {
  if (owes === undefined) return;
  const text = `${dutyText(user, owes)}: until then tokens and Basic sign-in of ${user} are refused.`;
  throw new AppError("action_required", text, { details: { owes } });
}

function dutyText(user: string, owes: NonNullable<Principal["owes"]>): string {
  const first = owes === "password" ? "change the first password" : "set up a second factor";
  return `${user} must ${first} before anything else, on the page /user/account`;
}

/**
 * For calls that store work which runs later with all rights of its author. Throws `AppError("denied")` for a token
 * with only a part of its user's rights: the work would have the other rights, too.
 */
export function requireAllOwnGrants(principal: Principal): void {
  if (principal.byToken !== "part") return;
  const text = `This goes on with all rights of ${principal.user}, of which the token has a part: sign in, or use a token with all of them.`;
  throw new AppError("denied", text);
}

/**
 * Throws `AppError("denied")` unless the principal has the permission. The error names the permission, or the open duty
 * or read-only reason that took it. Every service function that callers reach calls this first.
 */
export function requirePermission(principal: Principal, permission: Permission): void {
  if (allows(principal, permission)) return;
  requireNoDuty(principal);
  if (!permission.endsWith(":read")) requireMayChange(principal);
  throw new AppError("denied", `${deniedCaller(principal)} lacks the permission ${permission}.`, {
    details: { permission },
  });
}

/** The token if it has only a part of its user's rights: then the user may have the right that it lacks. */
function deniedCaller({ user, byToken, tokenName = "" }: Principal): string {
  if (byToken !== "part") return user;
  return tokenName === "" ? `The token of ${user}` : `The token ${tokenName} of ${user}`;
}

/**
 * Like `requirePermission`, for a function that several kinds of calls share: one of the permissions is enough. The
 * error names the first one.
 */
export function requireOneOf(
  principal: Principal,
  permissions: readonly [first: Permission, ...others: readonly Permission[]],
): void {
  if (!permissions.some((permission) => allows(principal, permission))) requirePermission(principal, permissions[0]);
}

/**
 * Throws `AppError("denied")` unless the principal may create, alter and drop the class at `path`. A definition affects
 * every row and column of the class and of the classes below it. So the principal needs a rule that opens all of them
 * for writing, without a row condition or a hidden column.
 */
export function requireDefining(principal: Principal, path: string): void {
  requirePermission(principal, "objects:write");
  requirePermission(principal, "schema:write");
  if (isUnrestricted(principal, path)) return;
  const text = `${principal.user} may not define ${path}: that takes reading and writing all of it, and of the classes below it.`;
  throw new AppError("denied", text, { details: { class: path } });
}

/** True if the principal may use the path of a script or file; the path is absolute and normalised. */
export function pathAllowed({ paths }: Pick<Principal, "paths">, path: string): boolean {
  return paths === undefined || paths.some((open) => isInside(open, path));
}

/**
 * True if the path is open to the principal, or is a folder that contains an open path. Such a folder shows only the
 * entries that lead to open paths.
 */
export function pathVisible(principal: Pick<Principal, "paths">, path: string): boolean {
  return pathAllowed(principal, path) || (principal.paths ?? []).some((open) => isInside(path, open));
}

/** Like `pathAllowed`, but throws `AppError("denied")` for a closed path. */
export function requirePath(principal: Principal, path: string): void {
  if (pathAllowed(principal, path)) return;
  throw new AppError("denied", `The path ${path} is not open to ${principal.user}.`, { details: { path } });
}
