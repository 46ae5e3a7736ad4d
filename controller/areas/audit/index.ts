export { auditArea } from "./area.ts";
export { AnchorFile } from "./anchor-file.ts";
export { Anchoring } from "./anchoring.ts";
export { HeadStore } from "./head-store.ts";
export { entryWritten } from "./run-entries.ts";
export { audited, type RunTrail } from "./runs.ts";
export { AuditService, type AuditTrail } from "./service.ts";
export { StoredTrail } from "./store.ts";
export type * from "./types.ts";
