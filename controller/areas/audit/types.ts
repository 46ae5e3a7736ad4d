import type { InCommit } from "../objects/index.ts";

/** Class of a tenant's audit entries, relative to its name space. */
export const AUDIT_CLASS_PATH = "/system/audit";

/**
 * Action of the entry that reports that heads of this run cannot be stored. Entries without a head are then expected.
 */
export const HEADS_LATE = "audit heads late";

/** One entry of the audit trail: a change or a denial. */
export interface AuditEntry {
  readonly tenant: string;
  readonly user: string;
  /** The permission that was required, such as `hosts:write`; `signin` for sign-ins. */
  readonly permission: string;
  /** For example `POST /host`; never values of secrets. */
  readonly action: string;
  /**
   * The objects that the call changed or tried to change: names, paths, ids or classes in the given order, separated by
   * commas. Absent if the action says everything: a sign-in, or a change of the whole tenant.
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

/** An entry for the commit of the change that it is about. Give it to the write of that change. */
export interface EntryInCommit extends InCommit {
  /** True if the change and the entry are durable. False after a write: `record` has to write the entry. */
  isDurable(): boolean;
}

export interface AuditInCommits {
  /**
   * An entry that a store whose commits have several rows writes together with its change: both are durable or neither
   * is. It is chained in the order of the commits. `ospace`: name space of the tenant.
   */
  inCommit(entry: AuditEntry, ospace: string): EntryInCommit;
}

export interface Audit {
  /**
   * Call it before a change, so that nothing is changed that could not be recorded. `AppError("unavailable")` within
   * `AUDIT_PATIENCE_MS` while writes of this tenant's entries are known to fail. It retries by itself.
   */
  ready(tenant: string): Promise<void>;
  /**
   * Durable when it resolves; the entries of one controller form a hash chain. While writes are known to fail, it
   * throws within `AUDIT_PATIENCE_MS` and keeps trying in the background.
   */
  write(entry: AuditEntry): Promise<void>;
  /**
   * As `write`, for a completed change that cannot be undone when its entry fails: never throws. A failure is logged,
   * and the next change is refused.
   */
  record(entry: AuditEntry): Promise<void>;
}
