import { isAppError } from "../../../common/errors.ts";
import type { Audit } from "../audit/index.ts";
import type { Principal } from "../permissions/index.ts";

/** Writes the audit entries of changes that do not pass the gate of a permission, whether they succeed or fail. */
export class RecordedChanges {
  readonly #audit: Audit;

  constructor(audit: Audit) {
    this.#audit = audit;
  }

  /** A change of the caller's own data. It needs no permission, but gets an audit entry like any other. */
  ofOwn<T>(principal: Principal, action: string, change: () => Promise<T>): Promise<T> {
    return this.of(principal, { action, permission: "signin", object: principal.user }, change);
  }

  /** Refuses the change while no audit entry can be written. */
  async of<T>(
    principal: Principal,
    named: { readonly action: string; readonly permission: string; readonly object: string },
    change: () => Promise<T>,
  ): Promise<T> {
    const { tenant, user, remote = "", traceparent } = principal;
    const entry = { tenant, user, ...named, remote, traceparent };
    await this.#audit.ready(tenant);
    try {
      const answer = await change();
      await this.#audit.record({ ...entry, outcome: "ok", code: "ok" });
      return answer;
    } catch (error) {
      const code = isAppError(error) ? error.code : "internal";
      await this.#audit.record({ ...entry, outcome: "failed", code });
      throw error;
    }
  }
}
