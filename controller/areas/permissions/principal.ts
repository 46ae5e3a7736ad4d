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

/** Throws `AppError("denied")` that names the missing permission. */
export function requirePermission(principal: Principal, permission: Permission): void {
  if (allows(principal, permission)) return;
  throw new AppError("denied", `${principal.user} lacks the permission ${permission}.`, { details: { permission } });
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
