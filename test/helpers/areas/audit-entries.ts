import { MemoryTrail } from "../http/http-app.ts";
import { TEST_SECRETS, TestClock, testRuntime } from "../time/runtime.ts";
import { AuditService } from "../../../controller/areas/audit/service.ts";
import type { AuditEntry } from "../../../controller/areas/audit/types.ts";

/** Returns an entry of a change of a host that went well, with these members changed. */
export function entry(members: Partial<AuditEntry> = {}): AuditEntry {
  return {
    tenant: "matrix",
    user: "u",
    permission: "hosts:write",
    action: "POST /host",
    outcome: "ok",
    code: "ok",
    remote: "r",
    traceparent: "t",
    ...members,
  };
}

/** Opens an audit service over a trail in memory, on a clock of its own. */
export function openAudit() {
  const clock = new TestClock();
  const trail = new MemoryTrail();
  const audit = new AuditService({ runtime: testRuntime(clock), trail, keys: TEST_SECRETS });
  return { clock, trail, audit };
}
