import { AppError } from "../../../../common/errors.ts";
import { USER_CHANGE_ATTEMPTS_MAX, USERS_PER_TENANT_MAX } from "../../../../common/limits.ts";
import { newStamp, requireExpected, type Expected } from "../../../../common/revisions.ts";
import type { Clock, Random } from "../../../../common/time.ts";
import { encodeJson } from "../../../store/format.ts";
import type { KvCondition } from "../../../store/kv.ts";
import type { GroupService } from "../../groups/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { linkKey, putLink } from "../providers/link-store.ts";
import type { EffectiveRights } from "../rights/effective-rights.ts";
import { factorKey } from "../second-factor/store.ts";
import { USERS, type UserRecord, type UserStore } from "../store.ts";
import type { User } from "../types.ts";
import { isActiveAdministrator, type Members } from "./members.ts";
import { deletion, newNodeId, parentIn, placing, requireFree, shown, tooMany, unknownNode } from "./places.ts";
import { required } from "./reader.ts";
import { idKey, isOpen, memberKey, type Restructuring, type TreeStore, type TreeView } from "./tree-store.ts";

type Edit = (record: UserRecord) => Promise<UserRecord>;

interface WriteDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly users: UserStore;
  readonly tree: TreeStore;
  readonly members: Members;
  readonly powers: EffectiveRights;
  readonly groups?: Pick<GroupService, "forget"> | undefined;
}

/**
 * Writes of users, each with what must stay true of the tree: a name and a place belong to one node, and a tenant keeps
 * an active administrator. Permissions are checked by the caller; the rights of the user that is changed are checked
 * here, because they may change until the write.
 */
export class UserWrites {
  readonly #with: WriteDependencies;

  constructor(dependencies: WriteDependencies) {
    this.#with = dependencies;
  }

  /**
   * Stores a new user below the organisation `wanted` (path or id; the root when absent). `AppError("conflict")` if the
   * name or the account of the provider is taken.
   */
  insert(
    record: UserRecord,
    { parent: wanted, expected }: { readonly parent?: string | undefined; readonly expected?: Expected | undefined },
  ): Promise<User> {
    const { tenant, username, openId } = record;
    return this.#restructure(record, async (tree) => {
      const parent = parentIn(tree, wanted);
      // Without its stamp: the caller may not see who changed a user of that name.
      const same = expected && (await this.#with.users.get(tenant, username)) && {};
      requireExpected(expected, `The user ${username}`, same);
      if (tree.users >= USERS_PER_TENANT_MAX) throw tooMany("users", "USERS_PER_TENANT_MAX", USERS_PER_TENANT_MAX);
      await requireFree(tree, USERS + username, `There is already a user ${username}.`);
      await requireFree(tree, memberKey(parent, username), `${username} is the name of an organisation there.`);
      if (openId) await requireFree(tree, linkKey(openId), "That account of the provider belongs to another user.");
      const placed = { ...record, parent };
      const link = openId && { key: linkKey(openId), put: putLink(openId, username) };
      const conditions = [USERS + username, ...(link ? [link.key] : [])].map((key) => ({ key, revision: 0 }));
      const then = [...placing(placed), ...(link ? [link.put] : [])];
      return { if: conditions, then, users: 1, answer: shown(placed) };
    });
  }

  /** Makes the edit on the current state. `AppError("conflict")` if other writes always come first. */
  async edit({ tenant, user }: Principal, username: string, edit: Edit): Promise<User> {
    // If another write came first, the edit is made again on the new state.
    for (let attempt = 1; attempt <= USER_CHANGE_ATTEMPTS_MAX; attempt++) {
      const { record, revision } = await required(this.#with.users, tenant, username);
      const changed = this.#changed(user, await edit(record));
      if (isActiveAdministrator(record) && !isActiveAdministrator(changed))
        return this.#demote(record, async (now) => this.#changed(user, await edit(now)));
      if (await this.#with.users.put(changed, revision)) return shown(changed);
    }
    throw new AppError("conflict", `Others change the user ${username} all the time.`);
  }

  /** Removes the user with this id, and what belongs to it in the groups, the tree and the second factors. */
  remove(
    principal: Principal,
    {
      id,
      username,
      expected,
    }: { readonly id: string; readonly username: string; readonly expected?: Expected | undefined },
  ): Promise<void> {
    const { tenant } = principal;
    const { users, powers, groups } = this.#with;
    return this.#restructure({ tenant, username }, async (tree) => {
      const { record, revision } = await required(users, tenant, username);
      if (record.id !== id) throw unknownNode(id);
      await powers.requireAtLeast(principal, record);
      requireExpected(expected, `The user ${username}`, record);
      await this.#requireOther(record, tree);
      // Must be first: see the test "that cannot leave its groups stays" in `directory.test.ts`.
      await groups?.forget(tenant, username);
      const own = [factorKey(id), ...(record.openId ? [linkKey(record.openId)] : [])];
      const keys = [USERS + username, idKey(id), memberKey(record.parent, username), ...own];
      return { if: [{ key: USERS + username, revision }], then: keys.map(deletion), users: -1, answer: undefined };
    });
  }

  /** Moves the user to the organisation `to` (id or path). The id stays; it is answered. */
  move(
    principal: Principal,
    { id, username, to }: { readonly id: string; readonly username: string; readonly to: string },
  ): Promise<string> {
    const { users, powers } = this.#with;
    return this.#restructure({ tenant: principal.tenant, username }, async (tree) => {
      const { record, revision } = await required(users, principal.tenant, username);
      if (record.id !== id) throw unknownNode(id);
      await powers.requireAtLeast(principal, record);
      const parent = parentIn(tree, to);
      const condition: KvCondition = { key: USERS + username, revision };
      if (parent === record.parent) return { if: [condition], then: [], users: 0, answer: id };
      if (!isOpen(tree.organizations, parent)) await this.#requireOther(record, tree);
      await requireFree(tree, memberKey(parent, username), `There is already a ${username} there.`);
      const leave = deletion(memberKey(record.parent, username));
      return {
        if: [condition],
        then: [leave, ...placing(this.#changed(principal.user, { ...record, parent }))],
        users: 0,
        answer: id,
      };
    });
  }

  /** Gives an id and a place to a user that was stored before the tree existed. Idempotent. */
  place(tenant: string, username: string): Promise<void> {
    const id = newNodeId(this.#with.random);
    return this.#restructure({ tenant, username }, async () => {
      const { record, revision } = await required(this.#with.users, tenant, username);
      if (record.id !== "") return { if: [], then: [], users: 0, answer: undefined };
      const placed = { ...record, id };
      return { if: [{ key: USERS + username, revision }], then: placing(placed), users: 1, answer: undefined };
    });
  }

  /** Takes the role away in a change of the tree: the last two administrators cannot demote each other. */
  #demote({ tenant, username }: UserRecord, edit: Edit): Promise<User> {
    return this.#restructure({ tenant, username }, async (tree) => {
      const { record, revision } = await required(this.#with.users, tenant, username);
      const changed = await edit(record);
      await this.#requireOther(record, tree);
      const put = { kind: "put", key: USERS + username, value: encodeJson(changed) } as const;
      return { if: [{ key: USERS + username, revision }], then: [put], users: 0, answer: shown(changed) };
    });
  }

  #changed(by: string, record: UserRecord): UserRecord {
    return { ...record, changedMs: this.#with.clock.nowMs(), stamp: newStamp(by, this.#with) };
  }

  /** Throws `AppError("conflict")` for the last active administrator, without whom the tenant could not be managed. */
  async #requireOther(record: UserRecord, { organizations }: TreeView): Promise<void> {
    const { tenant, username } = record;
    if (isActiveAdministrator(record)) await this.#with.members.requireAdministrator(tenant, organizations, username);
  }

  #restructure<T>(
    user: Pick<UserRecord, "tenant" | "username">,
    plan: (tree: TreeView) => Promise<Restructuring<T>>,
  ): Promise<T> {
    return this.#with.users.written(user, () => this.#with.tree.restructure(user.tenant, plan));
  }
}
