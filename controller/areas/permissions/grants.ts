import type { Permission } from "./names.ts";
import type { Principal } from "./types.ts";

/**
 * The caller, with the permission `reading` added. For owners of a class that have already checked a permission of
 * their own: then only the rules decide which objects the caller sees. Use it only for reads and writes of that class.
 */
export function byRulesAlone(principal: Principal, reading: Permission): Principal {
  return allows(principal, reading) ? principal : { ...principal, grants: [...principal.grants, reading] };
}

export function allows(principal: Pick<Principal, "grants">, permission: Permission): boolean {
  const [area, verb] = permission.split(":");
  return principal.grants.some((grant) => grant === permission || grant === `*:${verb}` || grant === `${area}:*`);
}
