import { ROOT_ID } from "./organizations.ts";
import type { UserRecord } from "./store.ts";
import type { TreeStore } from "./tree-store.ts";

type Placed = Pick<UserRecord, "tenant" | "parent" | "active" | "epoch">;

/** Whether users may sign in and go on: they, and every organisation above them, are active. */
export class Activity {
  readonly #tree: Pick<TreeStore, "recent">;

  constructor(tree: Pick<TreeStore, "recent">) {
    this.#tree = tree;
  }

  /**
   * What sessions of the user carry, and are over without: it changes when the user's epoch does, and whenever an
   * organisation above the user is made inactive. Undefined for a user who is not active. As old as `TreeStore.recent`.
   */
  async epochOf({ tenant, parent, active, epoch }: Placed): Promise<string | undefined> {
    if (!active) return undefined;
    if (parent === ROOT_ID) return epoch;
    const above = (await this.#tree.recent(tenant)).above(parent);
    if (above.some((organization) => !organization.active)) return undefined;
    return [epoch, ...above.flatMap((organization) => organization.epoch ?? [])].join(" ");
  }

  async isActive(user: Placed): Promise<boolean> {
    return (await this.epochOf(user)) !== undefined;
  }
}
