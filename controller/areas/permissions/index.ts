export { allows, classAccess, requirePermission, ROLES, systemPrincipal, type RoleName } from "./principal.ts";
export type { ClassAccess, DataRule, Permission, Principal, Verb } from "./types.ts";
