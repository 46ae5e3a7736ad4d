export type { ChainReport } from "./chain.ts";
export { AuditService, type AuditTrail } from "./service.ts";
export { AUDIT_CLASS, StoredTrail, type TrailDependencies } from "./store.ts";
export type * from "./types.ts";
