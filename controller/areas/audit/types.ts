/** Where the entries of a tenant are objects, below its name space. */
export const AUDIT_CLASS_PATH = "/system/audit";

/** Action of the entry that says that heads of this run cannot be stored: entries without a head are expected. */
export const HEADS_LATE = "audit heads late";

/** One line of the audit trail: every change and every denial. */
export interface AuditEntry {
  readonly tenant: string;
  readonly user: string;
  /** The permission that was required, such as `hosts:write`; `signin` for sign-ins. */
  readonly permission: string;
  /** `POST /host` and the like, never values of secrets. */
  readonly action: string;
  /**
   * What was changed, or should have been: names, paths, ids, classes, in the order they were given, separated by commas.
   * Absent where the action says all: a sign-in, what concerns the whole tenant.
   */
  readonly object?: string;
  readonly outcome: "ok" | "denied" | "failed";
  readonly code: string;
  readonly remote: string;
  readonly traceparent: string;
}

/** An entry of the controller itself. */
export function systemEntry(tenant: string, action: string): AuditEntry {
  const who = { tenant, user: "system", permission: "audit:write" };
  return { ...who, action, outcome: "ok", code: "ok", remote: "", traceparent: "" };
}

export interface Audit {
  /**
   * Call before a change, so that nothing is done that could not be recorded: throws `AppError("unavailable")` within
   * `AUDIT_PATIENCE_MS` while entries of this tenant are known not to be written. It tries again by itself.
   */
  ready(tenant: string): Promise<void>;
  /**
   * Durable when it resolves; entries of one controller form a hash chain. While entries are known not to be written it
   * throws within `AUDIT_PATIENCE_MS`, and goes on to try.
   */
  write(entry: AuditEntry): Promise<void>;
  /**
   * `write` of what is over and cannot be undone because its entry failed: never throws. What could not be written is
   * logged, and the next change refused.
   */
  record(entry: AuditEntry): Promise<void>;
}
