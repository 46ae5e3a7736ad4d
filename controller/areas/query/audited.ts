import { isAppError } from "../../../common/errors.ts";
import { entryWritten, type Audit } from "../audit/index.ts";
import type { Principal } from "../permissions/index.ts";

export interface AuditedChange {
  readonly audit: Pick<Audit, "ready" | "record"> | undefined;
  readonly principal: Principal;
  /** Kinds of statements and classes, but no values. */
  readonly action: string;
  /** The classes. */
  readonly object: string;
}

/**
 * Makes a change and writes an audit entry, also if the change fails. `entryWritten` says when the entry is written.
 */
export async function audited<T>(change: AuditedChange, work: () => Promise<T>): Promise<T> {
  await change.audit?.ready(change.principal.tenant);
  let result: T;
  try {
    result = await work();
  } catch (error) {
    await entryWritten(change.principal, record(change, error));
    throw error;
  }
  await entryWritten(change.principal, record(change, undefined));
  return result;
}

/** Writes the entry about a change that succeeded, or failed with the error. */
export async function record({ audit, principal, action, object }: AuditedChange, error: unknown): Promise<void> {
  const code = error === undefined ? "ok" : isAppError(error) ? error.code : "internal";
  const outcome = error === undefined ? "ok" : code === "denied" ? "denied" : "failed";
  const { tenant, user, remote = "", traceparent } = principal;
  const permission = "objects:write";
  await audit?.record({ tenant, user, permission, action, object, outcome, code, remote, traceparent });
}
