import type { Permission } from "./names.ts";
import type { Principal } from "./types.ts";

/**
 * The caller, as the owner of a class asks for its objects: the owner has checked a permission of its own, so rules
 * alone decide which of them the caller sees. For reads and writes of that class only.
 */
export function byRulesAlone(principal: Principal, reading: Permission): Principal {
  return allows(principal, reading) ? principal : { ...principal, grants: [...principal.grants, reading] };
}

export function allows(principal: Pick<Principal, "grants">, permission: Permission): boolean {
  const [area, verb] = permission.split(":");
  return principal.grants.some((grant) => grant === permission || grant === `*:${verb}` || grant === `${area}:*`);
}
