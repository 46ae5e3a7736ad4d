import { ROOT_ID } from "./organizations.ts";
import type { EvidenceList } from "../../../store/evidence.ts";
import type { UserRecord } from "../store.ts";
import type { TreeStore } from "./tree-store.ts";

type Placed = Pick<UserRecord, "tenant" | "parent" | "active" | "epoch">;

/** Decides if users are active: a user is active if the user and every organisation above are marked as active. */
export class Activity {
  readonly #tree: Pick<TreeStore, "recent">;

  constructor(tree: Pick<TreeStore, "recent">) {
    this.#tree = tree;
  }

  /**
   * The epoch that valid sessions of the user have. It changes with the user's own epoch, and whenever an organisation
   * above the user is made inactive. Undefined for an inactive user. The organisations are at most `SIGN_IN_CACHE_MS`
   * old.
   */
  async epochOf({ tenant, parent, active, epoch }: Placed, evidence?: EvidenceList): Promise<string | undefined> {
    if (!active) return undefined;
    if (parent === ROOT_ID) return epoch;
    const above = (await this.#tree.recent(tenant, evidence)).above(parent);
    if (above.some((organization) => !organization.active)) return undefined;
    return [epoch, ...above.flatMap((organization) => organization.epoch ?? [])].join(" ");
  }

  async isActive(user: Placed): Promise<boolean> {
    return (await this.epochOf(user)) !== undefined;
  }
}
