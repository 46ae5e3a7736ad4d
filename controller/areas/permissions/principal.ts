import { AppError } from "../../../common/errors.ts";
import type { ClassAccess, DataRule, Permission, Principal } from "./types.ts";

interface Role {
  readonly grants: readonly string[];
  readonly data: readonly DataRule[];
}

/** The roles every tenant has. */
export const ROLES = {
  administrator: { grants: ["*:read", "*:write", "*:run"], data: [{ class: "/", access: "write" }] },
  viewer: { grants: ["*:read"], data: [{ class: "/", access: "read" }] },
} as const satisfies Record<string, Role>;

export type RoleName = keyof typeof ROLES;

/** The controller acting for a tenant by itself: demonstrations, ingest, schedules. */
export function systemPrincipal(tenant: string, ospace: string, traceparent: string): Principal {
  return { tenant, ospace, user: "system", groups: [], ...ROLES.administrator, traceparent };
}

export function allows(principal: Principal, permission: Permission): boolean {
  const [area, verb] = permission.split(":");
  return principal.grants.some((grant) => grant === permission || grant === `*:${verb}` || grant === `${area}:*`);
}

/**
 * The same user without any right to change or run something: grants and data rules are narrowed, so that every check
 * of them, now or later, refuses. The caller gets `reason`.
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
 * Throws `AppError("denied")` for a principal that reads only: for changes that need no permission, such as ending
 * one's own session.
 */
export function requireMayChange(principal: Principal): void {
  if (principal.readsOnlyBecause !== undefined) throw new AppError("denied", principal.readsOnlyBecause);
}

/**
 * The gate of every service function that a caller reaches: its first line. Throws `AppError("denied")` that names the
 * missing permission.
 */
export function requirePermission(principal: Principal, permission: Permission): void {
  if (allows(principal, permission)) return;
  if (!permission.endsWith(":read")) requireMayChange(principal);
  throw new AppError("denied", `${principal.user} lacks the permission ${permission}.`, { details: { permission } });
}

/**
 * As `requirePermission`, for what is a part of several calls: one of their permissions is enough. The error names the
 * first.
 */
export function requireOneOf(
  principal: Principal,
  permissions: readonly [first: Permission, ...others: readonly Permission[]],
): void {
  if (!permissions.some((permission) => allows(principal, permission))) requirePermission(principal, permissions[0]);
}

/** What the principal may do with objects of the class at `path`. */
export function classAccess(principal: Pick<Principal, "data">, path: string): ClassAccess {
  const rule = decidingRule(principal.data, path);
  const access = rule?.access ?? "none";
  return {
    readable: access !== "none",
    writable: access === "write",
    where: rule?.where,
    hidden: new Set(rule?.hidden),
  };
}

/**
 * Throws `AppError("denied")` unless the principal may define the class at `path`: make, alter or drop it. A definition
 * reaches every row and every column of the class and of those below it, so it takes reading and writing them all
 * without a restriction.
 */
export function requireDefining(principal: Principal, path: string): void {
  requirePermission(principal, "objects:write");
  if (isUnrestricted(principal.data, path)) return;
  const text = `${principal.user} may not define ${path}: that takes reading and writing all of it, and of the classes below it.`;
  throw new AppError("denied", text, { details: { class: path } });
}

function isUnrestricted(rules: readonly DataRule[], path: string): boolean {
  const deciding = decidingRule(rules, path);
  const below = rules.filter((rule) => rule.class !== path && covers(path, rule.class));
  return deciding !== undefined && [deciding, ...below].every(isWhole);
}

function isWhole({ access, where, hidden = [] }: DataRule): boolean {
  return access === "write" && where === undefined && hidden.length === 0;
}

function decidingRule(rules: readonly DataRule[], path: string): DataRule | undefined {
  let best: DataRule | undefined;
  for (const rule of rules) {
    if (covers(rule.class, path) && rule.class.length >= (best?.class.length ?? 0)) best = rule;
  }
  return best;
}

function covers(root: string, path: string): boolean {
  return root === "/" || path === root || path.startsWith(`${root}/`);
}
