import { Type } from "typebox";
import { AuditReport } from "../../../common/api/audit.ts";
import { endpoint, type Endpoint } from "../../http/endpoint.ts";
import type { AuditService } from "./service.ts";

export function auditRoutes(audit: AuditService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/audit/verify",
      permission: "audit:read",
      summary: "Reads the whole audit trail and tells what in it was changed, taken out or put in.",
      input: Type.Object({}),
      output: AuditReport,
      handler: async ({ principal }) => {
        const report = await audit.verifyChain(principal);
        return { message: { ...report, problems: [...report.problems] } };
      },
    }),
  ];
}
