export { classAccess, requirePermission, ROLES, systemPrincipal, type RoleName } from "./principal.ts";
export type { ClassAccess, DataRule, Permission, Principal } from "./types.ts";
