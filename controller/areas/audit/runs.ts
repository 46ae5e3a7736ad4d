import { isAppError } from "../../../common/errors.ts";
import type { Permission, Principal } from "../permissions/index.ts";
import { RunEntries } from "./run-entries.ts";
import type { Audit } from "./types.ts";

/** The trail's methods for a run of a script: `ready` before its first change, `record` at its end. */
export type RunTrail = Pick<Audit, "ready" | "record">;

/** Executes the host calls of a run. */
interface Host<Asked, Answer> {
  readonly call: (asked: Asked) => Promise<Answer>;
}

/** A run of a script with the rights of the principal. */
export interface AuditedRun<Asked, Answer> {
  readonly principal: Principal;
  readonly kind: "SCRIPT" | "TRIGGER" | "RULE";
  /** Name of the script. */
  readonly object: string;
  readonly permission: Permission;
  /**
   * `principal`: the principal of its host calls. `changed`: functions of the run that changed something which no
   * service records by itself.
   */
  readonly host: Host<Asked, Answer> & { readonly principal: Principal; readonly changed: ReadonlySet<string> };
}

/**
 * Executes `work` with the host of the run. A run that changed something leaves one entry, whether it fails or not;
 * other runs leave none. When it resolves, this entry and those of the services that its host calls reached are
 * written.
 */
export async function audited<T, Asked, Answer>(
  trail: Pick<RunTrail, "record">,
  run: AuditedRun<Asked, Answer>,
  work: (host: Host<Asked, Answer>) => Promise<T>,
): Promise<T> {
  const entries = new RunEntries(run.host.principal);
  let code = "ok";
  try {
    return await work({ call: (asked) => entries.during(() => run.host.call(asked)) });
  } catch (error) {
    code = isAppError(error) ? error.code : "internal";
    throw error;
  } finally {
    if (run.host.changed.size > 0) await trail.record(entryOf(run, code));
    await entries.end();
  }
}

function entryOf<Asked, Answer>(run: AuditedRun<Asked, Answer>, code: string) {
  const { principal, kind, object, permission, host } = run;
  const { tenant, user, remote = "", traceparent } = principal;
  const action = `${kind} ${object} ${[...host.changed].sort().join(" ")}`;
  const outcome = code === "ok" ? "ok" : code === "denied" ? "denied" : "failed";
  return { tenant, user, permission, action, object, outcome, code, remote, traceparent } as const;
}
