import { AppError } from "../../../../common/errors.ts";
import { USER_CHANGE_ATTEMPTS_MAX, USERS_PER_TENANT_MAX } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import { encodeJson } from "../../../store/format.ts";
import type { KvCondition } from "../../../store/kv.ts";
import type { GroupService } from "../../groups/index.ts";
import { requireNoDuty, requirePermission, type Principal } from "../../permissions/index.ts";
import { NO_DETAILS, requireTimeZone } from "./details.ts";
import { DirectoryReader, type DirectoryReaderDependencies, required } from "./reader.ts";
import { factorKey } from "../second-factor/store.ts";
import { checkHome } from "../pages/start-pages.ts";
import { isNarrower, ofUser, type LeftWork } from "../rights/left-work.ts";
import { linkKey, putLink } from "../providers/link-store.ts";
import { isActiveAdministrator, Members } from "./members.ts";
import { OrganizationChanges } from "./organization-changes.ts";
import { ROOT_ID } from "./organizations.ts";
import type { Passwords } from "../credentials/passwords.ts";
import {
  checkName,
  deletion,
  newNodeId,
  parentIn,
  placing,
  requireFree,
  shown,
  tooMany,
  unknownNode,
} from "./places.ts";
import {
  isAdministrator,
  NO_RIGHTS,
  requireGrouping,
  requireOwnSignIn,
  requireRights,
  type EffectiveRights,
} from "../rights/effective-rights.ts";
import { USERS, type UserRecord, type UserStore } from "../store.ts";
import { idKey, isOpen, memberKey, type TreeStore, type TreeView } from "./tree-store.ts";
import type { AuthoredWork, NewOrganization, NewUser, NodeChange, User, UserChange } from "../types.ts";

export interface DirectoryDependencies extends DirectoryReaderDependencies {
  readonly runtime: Runtime;
  readonly passwords: Passwords;
  readonly authored: readonly AuthoredWork[];
  readonly left: LeftWork;
  readonly groups?: Pick<GroupService, "forget"> | undefined;
  readonly powers: EffectiveRights;
  /** See `Credentials.again`. */
  readonly again: (principal: Principal, password: string) => Promise<UserRecord>;
  readonly recorded: Recorded;
  /** Expiry of a password that another user sets now; undefined: it does not expire. */
  readonly firstPasswordUntilMs: (tenant: string) => Promise<number | undefined>;
  readonly endTokens: (user: Pick<UserRecord, "tenant" | "username">) => Promise<unknown>;
}

/** Makes a change and writes an audit entry with this action, this permission and the affected user (`object`). */
export type Recorded = <T>(
  principal: Principal,
  entry: { readonly action: string; readonly permission: string; readonly object: string },
  change: () => Promise<T>,
) => Promise<T>;

type ChosenPassword = Pick<NewUser, "username" | "password" | "isGenerated">;
type Edit = (record: UserRecord) => Promise<UserRecord>;

/** Users and organisations of each tenant, as a tree. */
export class UserDirectory {
  readonly reader: DirectoryReader;
  readonly #runtime: Runtime;
  readonly #users: UserStore;
  readonly #tree: TreeStore;
  readonly #passwords: Passwords;
  readonly #groups: DirectoryDependencies["groups"];
  readonly #authored: readonly AuthoredWork[];
  readonly #left: LeftWork;
  readonly #organizations: OrganizationChanges;
  readonly #members: Members;
  readonly #powers: EffectiveRights;
  readonly #again: DirectoryDependencies["again"];
  readonly #recorded: Recorded;
  readonly #firstPasswordUntilMs: DirectoryDependencies["firstPasswordUntilMs"];
  readonly #endTokens: DirectoryDependencies["endTokens"];

  constructor(dependencies: DirectoryDependencies) {
    const { runtime, users, tree, passwords, authored, groups, powers, again, recorded } = dependencies;
    this.#firstPasswordUntilMs = dependencies.firstPasswordUntilMs;
    this.#endTokens = dependencies.endTokens;
    this.#runtime = runtime;
    this.#users = users;
    this.#tree = tree;
    this.#passwords = passwords;
    this.#authored = authored;
    this.#left = dependencies.left;
    this.#groups = groups;
    this.#members = new Members(users, dependencies.powers);
    this.#organizations = new OrganizationChanges({ runtime, tree, members: this.#members, left: dependencies.left });
    this.reader = new DirectoryReader(dependencies);
    this.#powers = powers;
    this.#again = again;
    this.#recorded = recorded;
  }

  /** Creates a user. `AppError("conflict")` if another user has that name, or an organisation in the same place. */
  async create(principal: Principal, user: NewUser): Promise<User> {
    requirePermission(principal, "users:write");
    const { username, rights, groups = [], openId } = user;
    checkName(username);
    requireRights(principal, rights);
    requireGrouping(principal, { groups: [] }, groups);
    await this.#powers.requireMaking(principal, { tenant: principal.tenant, username, rights, groups });
    // The groups of a provider's user come from the settings of the provider, so they may not exist here.
    if (!openId) await this.#powers.requireGroups(principal, [], groups);
    const nowMs = this.#runtime.clock.nowMs();
    const record: UserRecord = {
      tenant: principal.tenant,
      username,
      rights,
      groups,
      id: newNodeId(this.#runtime.random),
      parent: ROOT_ID,
      details: { ...NO_DETAILS, ...user.details },
      active: user.active ?? true,
      createdMs: nowMs,
      changedMs: nowMs,
      // Not a first password: no person knows the password of a user who signs in through a provider.
      ...(openId ? { openId, hash: await this.#hash(principal, user) } : await this.#firstPassword(principal, user)),
      epoch: this.#newEpoch(),
    };
    return this.#users.written(record, () =>
      this.#tree.restructure(principal.tenant, async (tree) => {
        const parent = parentIn(tree, user.parent);
        if (tree.users >= USERS_PER_TENANT_MAX) throw tooMany("users", "USERS_PER_TENANT_MAX", USERS_PER_TENANT_MAX);
        await requireFree(tree, USERS + username, `There is already a user ${username}.`);
        await requireFree(tree, memberKey(parent, username), `${username} is the name of an organisation there.`);
        if (openId) await requireFree(tree, linkKey(openId), "That account of the provider belongs to another user.");
        const placed = { ...record, parent };
        const link = openId && { key: linkKey(openId), put: putLink(openId, username) };
        const conditions = [USERS + username, ...(link ? [link.key] : [])].map((key) => ({ key, revision: 0 }));
        const then = [...placing(placed), ...(link ? [link.put] : [])];
        return { if: conditions, then, users: 1, answer: shown(placed) };
      }),
    );
  }

  /** Creates an organisation and answers its id. */
  createOrganization(principal: Principal, wanted: NewOrganization): Promise<string> {
    requirePermission(principal, "users:write");
    return this.#organizations.create(principal, wanted);
  }

  /** Like `Users.update`. */
  async update(principal: Principal, username: string, change: UserChange): Promise<User> {
    requirePermission(principal, "users:write");
    const { details, ...others } = change;
    if (change.rights !== undefined) requireRights(principal, change.rights);
    return this.#edit(principal, username, async (record) => {
      await this.#powers.requireAtLeast(principal, record);
      requireGrouping(principal, record, change.groups ?? record.groups);
      const next = { ...record, ...others, details: { ...record.details, ...details } };
      return { ...next, ...(hasOtherPowers(record, next) && { epoch: this.#newEpoch() }) };
    });
  }

  /** Puts the user into `groups`, and out of all other groups in `governed`. Groups outside `governed` stay. */
  async govern(
    principal: Principal,
    username: string,
    { groups, governed }: { readonly groups: readonly string[]; readonly governed: readonly string[] },
  ): Promise<User> {
    requirePermission(principal, "users:write");
    return this.#edit(principal, username, async (record) => {
      await this.#powers.requireAtLeast(principal, record);
      const next = [...record.groups.filter((group) => !governed.includes(group)), ...groups];
      requireGrouping(principal, record, next);
      return { ...record, groups: next, epoch: this.#newEpoch() };
    });
  }

  async setPassword(principal: Principal, username: string, password: string, isGenerated = false): Promise<void> {
    requirePermission(principal, "users:write");
    const first = await this.#firstPassword(principal, { username, password, isGenerated });
    await this.#edit(principal, username, async (record) => {
      await this.#powers.requireAtLeast(principal, record);
      return { ...lasting(record), ...first, epoch: this.#newEpoch() };
    });
  }

  /**
   * Sets the password of a user who has just proved the old one, and ends the user's tokens. `AppError("conflict")` if
   * the user has changed since `own` was read.
   */
  async setOwnPassword(principal: Principal, own: UserRecord, password: string): Promise<void> {
    const { username, epoch, firstPasswordUntilMs } = own;
    if (firstPasswordUntilMs !== undefined && (await this.#passwords.matches(password, own.hash)))
      throw new AppError("invalid", "That is the first password: take another one.");
    const hash = await this.#hash(principal, { username, password });
    await this.#edit(principal, username, async (record) => {
      if (record.epoch !== epoch) throw new AppError("conflict", "The user was changed meanwhile: sign in again.");
      return { ...lasting(record), hash, epoch: this.#newEpoch() };
    });
    await this.#endTokens(own);
  }

  /**
   * Changes a user or an organisation; `AppError("not_found")` for an unknown id. To change the own password, the
   * caller must give the old one. A new password for another user has its own audit action. Answers warnings: work that
   * continues with rights the user loses, and ignored members (organisations do not have every member of users).
   */
  async change(principal: Principal, id: string, change: NodeChange): Promise<readonly string[]> {
    requirePermission(principal, "users:write");
    const found = await this.reader.located(principal, id);
    if (found.otype === "org") return this.#organizations.change(principal, id, change);
    const { username } = found;
    if (change.password === undefined) return this.#changeUser(principal, { id, username }, change);
    const isOwn = username === principal.user;
    const action = isOwn ? "change the own password" : "set the password of another user";
    return this.#recorded(principal, { action, permission: "users:write", object: username }, async () => {
      if (!isOwn) return this.#changeUser(principal, { id, username }, change);
      await this.#proveOwn(principal, change.presentPassword);
      const warnings = await this.#changeUser(principal, { id, username }, change);
      await this.#endTokens({ tenant: principal.tenant, username });
      return warnings;
    });
  }

  async #proveOwn(principal: Principal, presentPassword = ""): Promise<void> {
    requireOwnSignIn(principal);
    if (presentPassword === "")
      throw new AppError("denied", "One's own password is changed with the present one: send it as password.");
    await this.#again(principal, presentPassword);
  }

  async #changeUser(
    principal: Principal,
    { id, username }: { readonly id: string; readonly username: string },
    change: NodeChange,
  ): Promise<readonly string[]> {
    const { isAdmin, password, ...others } = change;
    let narrows = false;
    const chosen = password === undefined ? undefined : await this.#chosen(principal, { username, password });
    if (isAdmin === true) requireRights(principal, { role: "administrator" });
    await this.#edit(principal, username, async (record) => {
      if (record.id !== id) throw unknownNode(id);
      await this.#powers.requireAtLeast(principal, record);
      requireTimeZone(change.details?.config, record.details.config);
      requireGrouping(principal, record, change.groups ?? record.groups);
      await this.#powers.requireGroups(principal, record.groups, change.groups ?? []);
      const next = {
        ...(chosen ? { ...lasting(record), ...chosen } : record),
        groups: others.groups ?? record.groups,
        active: others.active ?? record.active,
        details: { ...record.details, ...others.details },
        rights: isAdmin === undefined ? record.rights : rightsAfter(record.rights, isAdmin),
      };
      narrows = isNarrower(record, next);
      return { ...next, ...(hasOtherPowers(record, next) && { epoch: this.#newEpoch() }) };
    });
    return narrows ? this.#left.told(principal, ofUser(username)) : [];
  }

  /**
   * Removes a user, or an empty organisation. Answers the work that stops with its author, and the work that continues.
   * `AppError("conflict")` for the last active administrator and for an organisation that is not empty.
   */
  async remove(principal: Principal, id: string): Promise<readonly string[]> {
    requirePermission(principal, "users:write");
    const found = await this.reader.located(principal, id);
    if (found.otype === "org") {
      await this.#organizations.remove(principal, id);
      return [];
    }
    const { username } = found;
    const ends = await Promise.all(this.#authored.map((work) => work.endsWith(principal, username)));
    await this.#users.written({ tenant: principal.tenant, username }, () =>
      this.#tree.restructure(principal.tenant, async (tree) => {
        const { record, revision } = await required(this.#users, principal.tenant, username);
        if (record.id !== id) throw unknownNode(id);
        await this.#powers.requireAtLeast(principal, record);
        await this.#requireOther(record, tree);
        // Must be first: see the test "that cannot leave its groups stays" in `directory.test.ts`.
        await this.#groups?.forget(principal.tenant, username);
        const own = [factorKey(id), ...(record.openId ? [linkKey(record.openId)] : [])];
        const keys = [USERS + username, idKey(id), memberKey(record.parent, username), ...own];
        return { if: [{ key: USERS + username, revision }], then: keys.map(deletion), users: -1, answer: undefined };
      }),
    );
    return [...ends.flat(), ...(await this.#left.told(principal, ofUser(username)))];
  }

  /**
   * Moves a user, or an organisation with everything below it, to the organisation `to` (id or path). The id stays; it
   * is answered. `AppError("conflict")` if the name is taken there, or the target is inside the moved organisation.
   */
  async move(principal: Principal, id: string, to: string): Promise<string> {
    requirePermission(principal, "users:write");
    const { otype, username } = await this.reader.located(principal, id);
    if (otype === "org") return this.#organizations.move(principal, id, to);
    return this.#users.written({ tenant: principal.tenant, username }, () =>
      this.#tree.restructure(principal.tenant, (tree) => this.#moveUser(principal, tree, { id, username, to })),
    );
  }

  /** `AppError("not_found")` when no user of the caller's tenant has that id. */
  async usernameOf(principal: Principal, id: string): Promise<string> {
    requirePermission(principal, "users:read");
    const { otype, username } = await this.reader.located(principal, id);
    if (otype === "org") throw new AppError("invalid", `${username} is an organisation.`);
    return username;
  }

  /**
   * For operators: if no administrator can sign in and this user is an active one, makes the organisations above this
   * user active. Answers their paths.
   */
  reopen(principal: Principal, username: string): Promise<readonly string[]> {
    requirePermission(principal, "users:write");
    return this.#organizations.reopenAbove(principal.tenant, async () => {
      const { record } = await required(this.#users, principal.tenant, username);
      return isActiveAdministrator(record) ? record.parent : undefined;
    });
  }

  /** Sets the caller's start page; empty: the tenant's page applies. Needs no permission; refuses tokens. */
  async setOwnHome(principal: Principal, home: string): Promise<void> {
    requireOwnSignIn(principal, "The start page is not set");
    requireNoDuty(principal);
    checkHome(home);
    await this.#edit(principal, principal.user, ({ home: _before, ...record }) =>
      Promise.resolve({ ...record, ...(home !== "" && { home }) }),
    );
  }

  /** Gives an id and a place in the tree to users that were stored before the tree existed. Idempotent. */
  async repair(tenant: string): Promise<void> {
    for await (const page of this.#users.pages(tenant)) {
      for (const { record } of page) if (record.id === "") await this.#place(tenant, record.username);
    }
  }

  async #place(tenant: string, username: string): Promise<void> {
    const id = newNodeId(this.#runtime.random);
    await this.#users.written({ tenant, username }, () =>
      this.#tree.restructure(tenant, async () => {
        const { record, revision } = await required(this.#users, tenant, username);
        if (record.id !== "") return { if: [], then: [], users: 0, answer: undefined };
        const placed = { ...record, id };
        return { if: [{ key: USERS + username, revision }], then: placing(placed), users: 1, answer: undefined };
      }),
    );
  }

  async #edit({ tenant }: Principal, username: string, edit: Edit): Promise<User> {
    // If another write came first, the edit is made again on the new state.
    for (let attempt = 1; attempt <= USER_CHANGE_ATTEMPTS_MAX; attempt++) {
      const { record, revision } = await required(this.#users, tenant, username);
      const changed = { ...(await edit(record)), changedMs: this.#runtime.clock.nowMs() };
      if (isActiveAdministrator(record) && !isActiveAdministrator(changed)) return this.#demote(tenant, username, edit);
      if (await this.#users.put(changed, revision)) return shown(changed);
    }
    throw new AppError("conflict", `Others change the user ${username} all the time.`);
  }

  /** Takes the role away in a change of the tree: the last two administrators cannot demote each other. */
  #demote(tenant: string, username: string, edit: Edit): Promise<User> {
    return this.#users.written({ tenant, username }, () =>
      this.#tree.restructure(tenant, async (tree) => {
        const { record, revision } = await required(this.#users, tenant, username);
        const changed = { ...(await edit(record)), changedMs: this.#runtime.clock.nowMs() };
        await this.#requireOther(record, tree);
        const put = { kind: "put", key: USERS + username, value: encodeJson(changed) } as const;
        return { if: [{ key: USERS + username, revision }], then: [put], users: 0, answer: shown(changed) };
      }),
    );
  }

  /** Throws `AppError("conflict")` for the last active administrator, without whom the tenant could not be managed. */
  async #requireOther(record: UserRecord, { organizations }: TreeView): Promise<void> {
    const { tenant, username } = record;
    if (isActiveAdministrator(record)) await this.#members.requireAdministrator(tenant, organizations, username);
  }

  async #moveUser(
    principal: Principal,
    tree: TreeView,
    { id, username, to }: { readonly id: string; readonly username: string; readonly to: string },
  ) {
    const { record, revision } = await required(this.#users, principal.tenant, username);
    if (record.id !== id) throw unknownNode(id);
    await this.#powers.requireAtLeast(principal, record);
    const parent = parentIn(tree, to);
    const condition: KvCondition = { key: USERS + username, revision };
    if (parent === record.parent) return { if: [condition], then: [], users: 0, answer: id };
    if (!isOpen(tree.organizations, parent)) await this.#requireOther(record, tree);
    await requireFree(tree, memberKey(parent, username), `There is already a ${username} there.`);
    const leave = deletion(memberKey(record.parent, username));
    return { if: [condition], then: [leave, ...placing({ ...record, parent })], users: 0, answer: id };
  }

  async #chosen(principal: Principal, password: ChosenPassword): Promise<Pick<UserRecord, "hash">> {
    if (password.username !== principal.user) return this.#firstPassword(principal, password);
    return { hash: await this.#hash(principal, password) };
  }

  /** Hash of a password that another user sets, marked as a first password if the policy says so. */
  async #firstPassword(
    principal: Principal,
    password: ChosenPassword,
  ): Promise<Pick<UserRecord, "hash" | "firstPasswordUntilMs">> {
    const hash = await this.#hash(principal, password);
    const untilMs = await this.#firstPasswordUntilMs(principal.tenant);
    return { hash, ...(untilMs !== undefined && { firstPasswordUntilMs: untilMs }) };
  }

  #hash({ tenant }: Principal, { username, password, isGenerated = false }: ChosenPassword): Promise<string> {
    return isGenerated ? this.#passwords.hashGenerated(password) : this.#passwords.hash(password, [username, tenant]);
  }

  #newEpoch(): string {
    return Buffer.from(this.#runtime.random.bytes(12)).toString("base64url");
  }
}

/** The record without the mark of a first password. */
function lasting({ firstPasswordUntilMs: _, ...record }: UserRecord): UserRecord {
  return record;
}

function rightsAfter(rights: UserRecord["rights"], isAdmin: boolean): UserRecord["rights"] {
  if (isAdmin) return { role: "administrator" };
  return isAdministrator(rights) ? NO_RIGHTS : rights;
}

function hasOtherPowers(before: UserRecord, after: UserRecord): boolean {
  return (
    before.hash !== after.hash ||
    before.active !== after.active ||
    JSON.stringify([before.rights, before.groups]) !== JSON.stringify([after.rights, after.groups])
  );
}
