import { ROOT_ID } from "./organizations.ts";
import type { UserRecord } from "../store.ts";
import type { TreeStore } from "./tree-store.ts";

type Placed = Pick<UserRecord, "tenant" | "parent" | "active" | "epoch">;

/** Decides if users may sign in and stay signed in: they and every organisation above them must be active. */
export class Activity {
  readonly #tree: Pick<TreeStore, "recent">;

  constructor(tree: Pick<TreeStore, "recent">) {
    this.#tree = tree;
  }

  /**
   * The epoch that sessions of the user must carry to be valid. It changes with the user's own epoch, and whenever an
   * organisation above the user is made inactive. Undefined for an inactive user. As old as `TreeStore.recent`.
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
