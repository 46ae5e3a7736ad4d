import type { Area } from "../../area.ts";
import { auditRoutes } from "./routes.ts";
import type { AuditService } from "./service.ts";
import { AUDIT_CLASS } from "./store.ts";

export function auditArea(audit: AuditService): Area {
  return {
    name: "audit",
    endpoints: auditRoutes(audit),
    classes: [AUDIT_CLASS],
    leave: (tenant) => audit.leave(tenant),
    repair: async (tenant) => void (await audit.verifyNewest(tenant)),
  };
}
