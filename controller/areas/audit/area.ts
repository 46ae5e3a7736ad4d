import type { Area } from "../../area.ts";
import type { Anchoring } from "./anchoring.ts";
import { KEY_CONTEXT } from "./chain.ts";
import { auditRoutes } from "./routes.ts";
import type { AuditService } from "./service.ts";
import { AUDIT_CLASS } from "./store.ts";

export function auditArea(audit: AuditService, anchoring?: Anchoring): Area {
  return {
    name: "audit",
    endpoints: auditRoutes(audit),
    classes: [AUDIT_CLASS],
    derivations: [KEY_CONTEXT],
    levels: [
      {
        name: "odp_audit_heads_failing",
        help: "Tenants whose sealed heads of the audit trail cannot be stored.",
        value: () => audit.headsFailing,
      },
      ...(anchoring ? levelsOf(anchoring) : []),
    ],
    start: () => {
      audit.start();
      anchoring?.start();
    },
    leave: (tenant) => audit.leave(tenant),
    repair: async (tenant) => void (await audit.verifyNewest(tenant)),
    maintain: (tenant) => Promise.resolve(audit.maintain(tenant)),
    close: async () => {
      await audit.close();
      // After the audit, so that the last seals are anchored.
      await anchoring?.close();
    },
  };
}

function levelsOf(anchoring: Anchoring): NonNullable<Area["levels"]> {
  return [
    {
      name: "odp_audit_anchor_failing",
      help: "1 while the newest digests of the audit trail cannot be written outside the store.",
      value: () => (anchoring.failure === undefined ? 0 : 1),
    },
    {
      name: "odp_audit_anchor_waiting",
      help: "Runs of the audit trail with entries that are not anchored outside the store yet.",
      value: () => anchoring.waiting,
    },
  ];
}
