export {
  accessKey,
  classAccess,
  closingOf,
  conditionsOf,
  decidingRules,
  FIELDS_OF_ALL,
  hasRawBytes,
  MARKS_FIELD,
  RAW_BYTES_FIELD,
  isUnrestricted,
  rowLimit,
  seesAll,
  seesWhole,
  writesAll,
} from "./access.ts";
export { currentRights } from "./current.ts";
export { allows, byRulesAlone } from "./grants.ts";
export { hasGrant, holds, requireHolding, requireNoPartToken, type GivenRights } from "./holding.ts";
export {
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
export { PERMISSIONS, type Permission } from "./names.ts";
export { sharedGrant, sharedRights } from "./shared.ts";
export type {
  AccessPart,
  ClassAccess,
  ClassReading,
  DataRule,
  FieldCondition,
  HiddenColumns,
  Principal,
  RowLimit,
  RowTest,
  TriggerChain,
} from "./types.ts";
