export { currentRights } from "./current.ts";
export {
  allows,
  classAccess,
  readingOnly,
  requireDefining,
  requireMayChange,
  requireOneOf,
  requirePermission,
  ROLES,
  systemPrincipal,
  type RoleName,
} from "./principal.ts";
export type { ClassAccess, DataRule, Permission, Principal } from "./types.ts";
