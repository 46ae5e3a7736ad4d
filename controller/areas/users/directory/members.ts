import { AppError } from "../../../../common/errors.ts";
import { holds, ROLES, type Principal } from "../../permissions/index.ts";
import type { Organizations } from "./organizations.ts";
import { isAdministrator, type EffectiveRights } from "../rights/effective-rights.ts";
import type { UserRecord, UserStore } from "../store.ts";
import { isOpen, type OrganizationRecord } from "./tree-store.ts";

type Tree = Organizations<OrganizationRecord>;

/** The users below organisations. */
export class Members {
  readonly #users: Pick<UserStore, "pages">;
  readonly #powers: EffectiveRights;

  constructor(users: Pick<UserStore, "pages">, powers: EffectiveRights) {
    this.#users = users;
    this.#powers = powers;
  }

  /**
   * Like `EffectiveRights.requireAtLeast`, for all users below an organisation. The caller may change the organisation
   * only if it may change each of those users.
   */
  async requireAtLeast(principal: Principal, tree: Tree, id: string): Promise<void> {
    if (holds(principal, ROLES.administrator)) return;
    for await (const record of this.#below(principal.tenant, tree, id))
      await this.#powers.requireAtLeast(principal, record);
  }

  async namesBelow(tenant: string, tree: Tree, id: string): Promise<ReadonlySet<string>> {
    const names = new Set<string>();
    for await (const { username } of this.#below(tenant, tree, id)) names.add(username);
    return names;
  }

  /**
   * Throws `AppError("conflict")` unless an active administrator remains in that tree, not counting the user `without`.
   * Otherwise the tenant could not be managed any more.
   */
  async requireAdministrator(tenant: string, tree: Tree, without = ""): Promise<void> {
    if (await this.hasAdministrator(tenant, tree, without)) return;
    const text =
      without === "" ? "No active administrator would be left." : `${without} is the last active administrator.`;
    throw new AppError("conflict", text);
  }

  async hasAdministrator(tenant: string, tree: Tree, without = ""): Promise<boolean> {
    for await (const page of this.#users.pages(tenant))
      for (const { record } of page)
        if (record.username !== without && isActiveAdministrator(record) && isOpen(tree, record.parent)) return true;
    return false;
  }

  async *#below(tenant: string, tree: Tree, id: string): AsyncGenerator<UserRecord> {
    for await (const page of this.#users.pages(tenant))
      for (const { record } of page) if (tree.isInside(record.parent, id)) yield record;
  }
}

/** True for an active administrator. Checks only the user: an inactive organisation above is ignored. */
export function isActiveAdministrator({ active, rights }: Pick<UserRecord, "active" | "rights">): boolean {
  return active && isAdministrator(rights);
}
