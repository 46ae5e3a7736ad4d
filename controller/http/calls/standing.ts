import { isAppError } from "../../../common/errors.ts";

/** True if admitted work may continue. A refusal ends the work; an outage of the store does not. */
export async function stillMay(answer: Promise<boolean>): Promise<boolean> {
  try {
    return await answer;
  } catch (error) {
    return !isAppError(error, "denied", "action_required", "signin");
  }
}

/** A user whose rights have changed or ended. */
export interface RightsChange {
  readonly tenant: string;
  /** Absent: all users of the tenant. */
  readonly user?: string;
}

type Member = RightsChange & { readonly user: string };

/**
 * Work that continues after it was admitted: open sockets, event streams, long reads. Each is checked again when the
 * rights of its user change.
 */
export class Standing {
  readonly #tenants = new Map<string, Map<string, Set<() => void>>>();

  /** Calls `ask` at every change of the user's rights, until the returned function is called. */
  enter({ tenant, user }: Member, ask: () => void): () => void {
    const users = this.#tenants.get(tenant) ?? new Map<string, Set<() => void>>();
    const asks = users.get(user) ?? new Set();
    this.#tenants.set(tenant, users.set(user, asks.add(ask)));
    return () => {
      asks.delete(ask);
      if (asks.size === 0 && users.get(user) === asks) users.delete(user);
      if (users.size === 0 && this.#tenants.get(tenant) === users) this.#tenants.delete(tenant);
    };
  }

  changed({ tenant, user }: RightsChange): void {
    const users = this.#tenants.get(tenant);
    const affected = user === undefined ? [...(users?.values() ?? [])] : [users?.get(user) ?? []];
    for (const asks of affected) for (const ask of [...asks]) ask();
  }
}
