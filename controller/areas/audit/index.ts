export { AuditService, type AuditTrail } from "./service.ts";
export { AUDIT_CLASS, StoredTrail } from "./store.ts";
export type * from "./types.ts";
