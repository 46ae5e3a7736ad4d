export { classAccess, decidingRules, isUnrestricted, rowLimit, seesAll, seesWhole } from "./access.ts";
export { currentRights } from "./current.ts";
export { hasGrant, holds, requireHolding, requireNoPartToken, type GivenRights } from "./holding.ts";
export {
  allows,
  pathAllowed,
  pathVisible,
  owing,
  readingOnly,
  requireAllOwnGrants,
  requireDefining,
  requireMayChange,
  requireNoDuty,
  requireNoDutyOfProgram,
  requireOneOf,
  requirePath,
  requirePermission,
  ROLES,
  systemPrincipal,
  type RoleName,
} from "./principal.ts";
export { sharedGrant, sharedRights } from "./shared.ts";
export type {
  AccessPart,
  ClassAccess,
  DataRule,
  FieldCondition,
  HiddenColumns,
  Permission,
  Principal,
  RowLimit,
  RowTest,
  TriggerChain,
} from "./types.ts";
