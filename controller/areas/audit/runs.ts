import { isAppError } from "../../../common/errors.ts";
import type { Permission, Principal } from "../permissions/index.ts";
import type { Audit } from "./types.ts";

/** What a run of a text needs of the trail: `ready` before its first change, `record` at its end. */
export type RunTrail = Pick<Audit, "ready" | "record">;

/** A run of a text, which has the rights of the principal. */
export interface AuditedRun {
  readonly principal: Principal;
  readonly kind: "SCRIPT" | "TRIGGER" | "RULE";
  /** Name of the text. */
  readonly object: string;
  readonly permission: Permission;
  /** Functions by which it changed something that no service records by itself. */
  readonly changed: ReadonlySet<string>;
}

/** A run that changed something leaves one entry, failed or not; others leave none. */
export async function audited<T>(trail: Pick<RunTrail, "record">, run: AuditedRun, work: () => Promise<T>): Promise<T> {
  let code = "ok";
  try {
    return await work();
  } catch (error) {
    code = isAppError(error) ? error.code : "internal";
    throw error;
  } finally {
    if (run.changed.size > 0) await trail.record(entryOf(run, code));
  }
}

function entryOf({ principal, kind, object, permission, changed }: AuditedRun, code: string) {
  const { tenant, user, remote = "", traceparent } = principal;
  const action = `${kind} ${object} ${[...changed].sort().join(" ")}`;
  const outcome = code === "ok" ? "ok" : code === "denied" ? "denied" : "failed";
  return { tenant, user, permission, action, object, outcome, code, remote, traceparent } as const;
}
