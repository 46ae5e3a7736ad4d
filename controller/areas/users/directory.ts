import { AppError } from "../../../common/errors.ts";
import {
  ORGANIZATIONS_PER_TENANT_MAX,
  USER_CHANGE_ATTEMPTS_MAX,
  USER_TREE_DEPTH_MAX,
  USERNAME_MAX_CHARACTERS,
  USERS_PER_TENANT_MAX,
} from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import { encodeJson } from "../../store/format.ts";
import type { KvCondition, KvOperation } from "../../store/kv.ts";
import type { GroupService } from "../groups/index.ts";
import type { Objects } from "../objects/index.ts";
import { requireNoDuty, requireOneOf, requirePermission, type Principal } from "../permissions/index.ts";
import { NO_DETAILS } from "./details.ts";
import { factorKey } from "./factor-store.ts";
import { checkHome } from "./homes.ts";
import { isNarrower, ofUser, type LeftWork } from "./left-work.ts";
import { linkKey, putLink } from "./link-store.ts";
import { bareNode, organizationNode, userNode } from "./nodes.ts";
import { ROOT_ID } from "./organizations.ts";
import type { Passwords } from "./passwords.ts";
import {
  isAdministrator,
  NO_RIGHTS,
  requireGrouping,
  requireOwnSignIn,
  requireRights,
  type UserPowers,
} from "./powers.ts";
import { USERS, type StoredUser, type UserRecord, type UserStore } from "./store.ts";
import {
  idKey,
  memberKey,
  membersOf,
  organizationKey,
  type OrganizationRecord,
  type TreeStore,
  type TreeView,
} from "./tree-store.ts";
import type {
  AuthoredWork,
  Details,
  NewOrganization,
  NewUser,
  NodeChange,
  User,
  UserChange,
  UserNode,
} from "./types.ts";
import { nodeFilter } from "./visible.ts";

export interface DirectoryDependencies {
  readonly runtime: Runtime;
  readonly users: UserStore;
  readonly tree: TreeStore;
  readonly passwords: Passwords;
  readonly authored: readonly AuthoredWork[];
  readonly left: LeftWork;
  readonly groups?: Pick<GroupService, "forget"> | undefined;
  /** For what rules say of users; absent: nothing. */
  readonly objects?: Pick<Objects, "catalog"> | undefined;
  readonly powers: UserPowers;
  /** See `Credentials.again`. */
  readonly again: (principal: Principal, password: string) => Promise<UserRecord>;
  readonly recorded: Recorded;
  /** Until when a password that is set now by another than its user signs in; undefined: for good. */
  readonly firstPasswordUntilMs: (tenant: string) => Promise<number | undefined>;
}

/** Makes a change that is on record by this name, with the user it is made to. */
export type Recorded = <T>(
  principal: Principal,
  entry: { readonly action: string; readonly permission: string; readonly object: string },
  change: () => Promise<T>,
) => Promise<T>;

// No control characters, no colon (it ends the name in Basic credentials), no slash, no space at the ends.
const NAME = /^(?! )[^\p{C}/:]+(?<! )$/u;
/** The smallest id of 19 digits. */
const ID_BASE = 10n ** 18n;

type ChosenPassword = Pick<NewUser, "username" | "password" | "isGenerated">;
type Located = Pick<UserNode, "id" | "otype" | "username">;
type Edit = (record: UserRecord) => Promise<UserRecord>;

/** Users and organisations of each tenant, as a tree. */
export class UserDirectory {
  readonly #runtime: Runtime;
  readonly #users: UserStore;
  readonly #tree: TreeStore;
  readonly #passwords: Passwords;
  readonly #groups: DirectoryDependencies["groups"];
  readonly #authored: readonly AuthoredWork[];
  readonly #left: LeftWork;
  readonly #objects: DirectoryDependencies["objects"];
  readonly #powers: UserPowers;
  readonly #again: DirectoryDependencies["again"];
  readonly #recorded: Recorded;
  readonly #firstPasswordUntilMs: DirectoryDependencies["firstPasswordUntilMs"];

  constructor(dependencies: DirectoryDependencies) {
    const { runtime, users, tree, passwords, authored, groups, powers, again, recorded } = dependencies;
    this.#firstPasswordUntilMs = dependencies.firstPasswordUntilMs;
    this.#runtime = runtime;
    this.#users = users;
    this.#tree = tree;
    this.#passwords = passwords;
    this.#authored = authored;
    this.#left = dependencies.left;
    this.#groups = groups;
    this.#objects = dependencies.objects;
    this.#powers = powers;
    this.#again = again;
    this.#recorded = recorded;
  }

  /**
   * The node at that path with all below it that the caller may see. `AppError("not_found")` when there is none.
   */
  async subtree(principal: Principal, fullname: string): Promise<UserNode> {
    requirePermission(principal, "users:read");
    const { shown } = await nodeFilter(principal, this.#objects);
    const node = shown(await this.#subtree(principal, fullname));
    if (node === undefined) throw noNode(fullname);
    return node;
  }

  async #subtree({ tenant }: Principal, fullname: string): Promise<UserNode> {
    const tree = await this.#tree.organizations(tenant);
    const users: User[] = [];
    for await (const page of this.#users.pages(tenant)) users.push(...page.map(({ record }) => record));
    const id = tree.find(fullname);
    if (id !== undefined) return organizationNode(id, tree, users);
    const user = users.find(({ parent, username }) => tree.pathIn(parent, username) === fullname);
    if (user === undefined) throw noNode(fullname);
    return userNode(user, tree);
  }

  /** The caller, or a user that the caller may see; `undefined` when there is none. */
  async find(principal: Principal, username: string): Promise<User | undefined> {
    requirePermission(principal, "users:read");
    const stored = isName(username) ? await this.#users.get(principal.tenant, username) : undefined;
    if (stored === undefined) return undefined;
    const { record } = stored;
    const { seesName } = await nodeFilter(principal, this.#objects);
    const isSeen =
      username === principal.user || seesName(userNode(record, await this.#tree.organizations(principal.tenant)));
    return isSeen ? shown(record) : undefined;
  }

  /** Which names are those of users that the caller may see; any name where no rule hides a user. */
  async seenNames(principal: Principal): Promise<(username: string) => boolean> {
    requireOneOf(principal, ["users:read", "perms:read", "perms:write"]);
    const { seesName, seesAllNames } = await nodeFilter(principal, this.#objects);
    if (seesAllNames) return () => true;
    const tree = await this.#tree.organizations(principal.tenant);
    const names = new Set<string>();
    for await (const page of this.#users.pages(principal.tenant))
      for (const { record } of page) if (seesName(userNode(record, tree))) names.add(record.username);
    return (username) => names.has(username);
  }

  /** The caller's own node, which takes no permission; undefined for the platform itself. */
  async self(principal: Principal): Promise<UserNode | undefined> {
    const stored = await this.#users.get(principal.tenant, principal.user);
    return stored && userNode(stored.record, await this.#tree.organizations(principal.tenant));
  }

  /** Every node but the root, a page at a time; the caller's own alone without the permission. */
  async *nodes(principal: Principal): AsyncGenerator<readonly UserNode[]> {
    const { tenant } = principal;
    try {
      requirePermission(principal, "users:read");
    } catch {
      const self = await this.self(principal);
      if (self !== undefined) yield [self];
      return;
    }
    const tree = await this.#tree.organizations(tenant);
    yield [...tree.all].map(({ id }) => bareNode(id, tree, []));
    for await (const page of this.#users.pages(tenant)) yield page.map(({ record }) => userNode(record, tree));
  }

  /** `AppError("conflict")` when a user or a neighbour in the tree has that name. */
  async create(principal: Principal, user: NewUser): Promise<User> {
    requirePermission(principal, "users:write");
    const { username, rights, groups = [], openId } = user;
    checkName(username);
    requireRights(principal, rights);
    requireGrouping(principal, { groups: [] }, groups);
    // Groups may name a user before there is one.
    await this.#powers.requireAtLeast(principal, { tenant: principal.tenant, username, rights, groups });
    const nowMs = this.#runtime.clock.nowMs();
    const record: UserRecord = {
      tenant: principal.tenant,
      username,
      rights,
      groups,
      id: this.#newId(),
      parent: ROOT_ID,
      details: { ...NO_DETAILS, ...user.details },
      active: user.active ?? true,
      createdMs: nowMs,
      changedMs: nowMs,
      // Nobody knows the password of a user who comes by a provider.
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

  /** Answers the id. */
  async createOrganization(principal: Principal, wanted: NewOrganization): Promise<string> {
    requirePermission(principal, "users:write");
    const { username } = wanted;
    checkName(username);
    const nowMs = this.#runtime.clock.nowMs();
    const id = this.#newId();
    return this.#tree.restructure(principal.tenant, async (tree) => {
      const parent = parentIn(tree, wanted.parent);
      if (tree.organizations.size >= ORGANIZATIONS_PER_TENANT_MAX)
        throw tooMany("organisations", "ORGANIZATIONS_PER_TENANT_MAX", ORGANIZATIONS_PER_TENANT_MAX);
      requireDepth(tree.organizations.depthOf(parent) + 1);
      await requireFree(tree, memberKey(parent, username), `There is already a ${username} there.`);
      const record: OrganizationRecord = {
        id,
        parent,
        username,
        details: { ...NO_DETAILS, ...wanted.details },
        active: wanted.active ?? true,
        createdMs: nowMs,
        changedMs: nowMs,
      };
      return { if: [], then: placingOrganization(record), users: 0, answer: id };
    });
  }

  /** As `Users.update`. */
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

  /** Puts the user into `groups` and out of the other governed ones; groups that are not governed stay. */
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

  /** Of a user who just gave the present one. `AppError("conflict")` when the user was changed since. */
  async setOwnPassword(principal: Principal, own: UserRecord, password: string): Promise<void> {
    const { username, epoch, firstPasswordUntilMs } = own;
    if (firstPasswordUntilMs !== undefined && (await this.#passwords.matches(password, own.hash)))
      throw new AppError("invalid", "That is the first password: take another one.");
    const hash = await this.#hash(principal, { username, password });
    await this.#edit(principal, username, async (record) => {
      if (record.epoch !== epoch) throw new AppError("conflict", "The user was changed meanwhile: sign in again.");
      return { ...lasting(record), hash, epoch: this.#newEpoch() };
    });
  }

  /**
   * Of a user or an organisation; `AppError("not_found")` for an unknown id, `invalid` for what it cannot have. The
   * caller's own password takes the present one; one that is set for another is on record as that. Answers what goes on
   * with the rights that the user loses.
   */
  async change(principal: Principal, id: string, change: NodeChange): Promise<readonly string[]> {
    requirePermission(principal, "users:write");
    const found = await this.#located(principal, id);
    if (found.otype === "org") return this.#changeOrganization(principal, id, change);
    const { username } = found;
    if (change.password === undefined) return this.#changeUser(principal, { id, username }, change);
    const isOwn = username === principal.user;
    const action = isOwn ? "change the own password" : "set the password of another user";
    return this.#recorded(principal, { action, permission: "users:write", object: username }, async () => {
      if (isOwn) await this.#proveOwn(principal, change.presentPassword);
      return this.#changeUser(principal, { id, username }, change);
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
      requireGrouping(principal, record, change.groups ?? record.groups);
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
   * Removes a user, or an organisation with nothing in it. Answers what stops with the user, and what
   * goes on. `AppError("conflict")` for the last active administrator and for an organisation that is not empty.
   */
  async remove(principal: Principal, id: string): Promise<readonly string[]> {
    requirePermission(principal, "users:write");
    const found = await this.#located(principal, id);
    if (found.otype === "org") return this.#removeOrganization(principal, id);
    const { username } = found;
    const ends = await Promise.all(this.#authored.map((work) => work.endsWith(principal, username)));
    await this.#users.written({ tenant: principal.tenant, username }, () =>
      this.#tree.restructure(principal.tenant, async () => {
        const { record, revision } = await this.#required(principal.tenant, username);
        if (record.id !== id) throw unknownNode(id);
        await this.#powers.requireAtLeast(principal, record);
        await this.#requireOther(record);
        // First: `directory.test.ts`, "that cannot leave its groups stays".
        await this.#groups?.forget(principal.tenant, username);
        const own = [factorKey(id), ...(record.openId ? [linkKey(record.openId)] : [])];
        const keys = [USERS + username, idKey(id), memberKey(record.parent, username), ...own];
        return { if: [{ key: USERS + username, revision }], then: keys.map(deletion), users: -1, answer: undefined };
      }),
    );
    return [...ends.flat(), ...(await this.#left.told(principal, ofUser(username)))];
  }

  /**
   * Moves a user or an organisation with all below it into another organisation, by id or path. Answers the id, which
   * stays. `AppError("conflict")` when the name is taken there, or the target lies in what is moved.
   */
  async move(principal: Principal, id: string, to: string): Promise<string> {
    requirePermission(principal, "users:write");
    const { otype, username } = await this.#located(principal, id);
    const move = (): Promise<string> =>
      this.#tree.restructure(principal.tenant, (tree) =>
        otype === "org" ? moveOrganization(tree, id, to) : this.#moveUser(principal, tree, { id, username, to }),
      );
    return otype === "org" ? move() : this.#users.written({ tenant: principal.tenant, username }, move);
  }

  /** `AppError("not_found")` when no user of the caller's tenant has that id. */
  async usernameOf(principal: Principal, id: string): Promise<string> {
    requirePermission(principal, "users:read");
    const { otype, username } = await this.#located(principal, id);
    if (otype === "org") throw new AppError("invalid", `${username} is an organisation.`);
    return username;
  }

  /** The page that signing in leads the caller to; an empty path: the tenant's. Takes no permission, and no token. */
  async setOwnHome(principal: Principal, home: string): Promise<void> {
    requireOwnSignIn(principal, "The start page is not set");
    requireNoDuty(principal);
    checkHome(home);
    await this.#edit(principal, principal.user, ({ home: _before, ...record }) =>
      Promise.resolve({ ...record, ...(home !== "" && { home }) }),
    );
  }

  /** Gives users of before the tree an id and a place. Idempotent. */
  async repair(tenant: string): Promise<void> {
    for await (const page of this.#users.pages(tenant)) {
      for (const { record } of page) if (record.id === "") await this.#place(tenant, record.username);
    }
  }

  async #place(tenant: string, username: string): Promise<void> {
    const id = this.#newId();
    await this.#users.written({ tenant, username }, () =>
      this.#tree.restructure(tenant, async () => {
        const { record, revision } = await this.#required(tenant, username);
        if (record.id !== "") return { if: [], then: [], users: 0, answer: undefined };
        const placed = { ...record, id };
        return { if: [{ key: USERS + username, revision }], then: placing(placed), users: 1, answer: undefined };
      }),
    );
  }

  async #located(principal: Principal, id: string) {
    if (id === ROOT_ID) throw new AppError("invalid", "The root of the tree is not changed.");
    const found = /^\d{19,20}$/.test(id) ? await this.#tree.locate(principal.tenant, id) : undefined;
    if (found === undefined) throw unknownNode(id);
    const { sees } = await nodeFilter(principal, this.#objects);
    if (!sees(await this.#nodeOf(principal.tenant, { id, ...found }))) throw unknownNode(id);
    return found;
  }

  async #nodeOf(tenant: string, { id, otype, username }: Located): Promise<UserNode> {
    const tree = await this.#tree.organizations(tenant);
    if (otype === "org") return bareNode(id, tree, []);
    return userNode((await this.#required(tenant, username)).record, tree);
  }

  async #required(tenant: string, username: string): Promise<StoredUser> {
    const stored = isName(username) ? await this.#users.get(tenant, username) : undefined;
    if (stored === undefined) throw new AppError("not_found", `There is no user ${username}.`);
    return stored;
  }

  async #edit({ tenant }: Principal, username: string, edit: Edit): Promise<User> {
    // After a lost race the edit is made again, on what the other write left.
    for (let attempt = 1; attempt <= USER_CHANGE_ATTEMPTS_MAX; attempt++) {
      const { record, revision } = await this.#required(tenant, username);
      const changed = { ...(await edit(record)), changedMs: this.#runtime.clock.nowMs() };
      if (isActiveAdministrator(record) && !isActiveAdministrator(changed)) return this.#demote(tenant, username, edit);
      if (await this.#users.put(changed, revision)) return shown(changed);
    }
    throw new AppError("conflict", `Others change the user ${username} all the time.`);
  }

  /** A change of the tree, so that of two administrators who take each other's role at once one is left. */
  #demote(tenant: string, username: string, edit: Edit): Promise<User> {
    return this.#users.written({ tenant, username }, () =>
      this.#tree.restructure(tenant, async () => {
        const { record, revision } = await this.#required(tenant, username);
        const changed = { ...(await edit(record)), changedMs: this.#runtime.clock.nowMs() };
        await this.#requireOther(record);
        const put = { kind: "put", key: USERS + username, value: encodeJson(changed) } as const;
        return { if: [{ key: USERS + username, revision }], then: [put], users: 0, answer: shown(changed) };
      }),
    );
  }

  /** Without an administrator the tenant could not be managed any more. */
  async #requireOther(record: UserRecord): Promise<void> {
    if (!isActiveAdministrator(record)) return;
    for await (const page of this.#users.pages(record.tenant))
      if (page.some((one) => one.record.username !== record.username && isActiveAdministrator(one.record))) return;
    throw new AppError("conflict", `${record.username} is the last active administrator.`);
  }

  async #changeOrganization(principal: Principal, id: string, change: NodeChange): Promise<readonly string[]> {
    const { details, active, ...others } = change;
    const foreign = others.isAdmin === true || others.password !== undefined || (others.groups ?? []).length > 0;
    if (foreign) throw new AppError("invalid", "An organisation has no password, no groups and no rights.");
    await this.#tree.restructure(principal.tenant, async ({ organizations }) => {
      const record = organizations.get(id);
      if (record === undefined) throw unknownNode(id);
      const changedMs = this.#runtime.clock.nowMs();
      const merged: Details = { ...record.details, ...details };
      const changed = { ...record, details: merged, active: active ?? record.active, changedMs };
      return { if: [], then: [putOrganization(changed)], users: 0, answer: undefined };
    });
    return [];
  }

  async #removeOrganization(principal: Principal, id: string): Promise<readonly string[]> {
    await this.#tree.restructure(principal.tenant, async ({ kv, organizations }) => {
      const record = organizations.get(id);
      if (record === undefined) throw unknownNode(id);
      if ((await kv.list(membersOf(id), { limit: 1 })).entries.length > 0)
        throw new AppError("conflict", `The organisation ${record.username} is not empty.`);
      const keys = [organizationKey(id), memberKey(record.parent, record.username)];
      return { if: [], then: keys.map(deletion), users: 0, answer: undefined };
    });
    return [];
  }

  async #moveUser(
    principal: Principal,
    tree: TreeView,
    { id, username, to }: { readonly id: string; readonly username: string; readonly to: string },
  ) {
    const { record, revision } = await this.#required(principal.tenant, username);
    if (record.id !== id) throw unknownNode(id);
    await this.#powers.requireAtLeast(principal, record);
    const parent = parentIn(tree, to);
    const condition: KvCondition = { key: USERS + username, revision };
    if (parent === record.parent) return { if: [condition], then: [], users: 0, answer: id };
    await requireFree(tree, memberKey(parent, username), `There is already a ${username} there.`);
    const leave = deletion(memberKey(record.parent, username));
    return { if: [condition], then: [leave, ...placing({ ...record, parent })], users: 0, answer: id };
  }

  async #chosen(principal: Principal, password: ChosenPassword): Promise<Pick<UserRecord, "hash">> {
    if (password.username !== principal.user) return this.#firstPassword(principal, password);
    return { hash: await this.#hash(principal, password) };
  }

  /** Set by another than its user. */
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

  #newId(): string {
    const random = Buffer.from(this.#runtime.random.bytes(8)).readBigUInt64BE();
    return String(ID_BASE + 1n + (random % (2n ** 64n - ID_BASE - 1n)));
  }

  #newEpoch(): string {
    return Buffer.from(this.#runtime.random.bytes(12)).toString("base64url");
  }
}

export function isName(text: string): boolean {
  return text.length <= USERNAME_MAX_CHARACTERS && NAME.test(text) && text !== "." && text !== "..";
}

/** A user without what is secret. */
function shown(record: UserRecord): User {
  const { tenant, username, id, parent, details, groups, rights, active, home, createdMs, changedMs } = record;
  const user = { tenant, username, id, parent, details, groups, rights, active, createdMs, changedMs };
  return home === undefined ? user : { ...user, home };
}

async function moveOrganization(tree: TreeView, id: string, to: string) {
  const { organizations } = tree;
  const record = organizations.get(id);
  if (record === undefined) throw unknownNode(id);
  const parent = parentIn(tree, to);
  if (organizations.isInside(parent, id))
    throw new AppError("conflict", `${record.username} cannot be moved into itself.`);
  if (parent === record.parent) return { if: [], then: [], users: 0, answer: id };
  requireDepth(organizations.depthOf(parent) + organizations.heightOf(id));
  await requireFree(tree, memberKey(parent, record.username), `There is already a ${record.username} there.`);
  const leave = deletion(memberKey(record.parent, record.username));
  return { if: [], then: [leave, ...placingOrganization({ ...record, parent })], users: 0, answer: id };
}

function checkName(name: string): void {
  if (isName(name)) return;
  throw new AppError(
    "invalid",
    `${JSON.stringify(name)} is no user name: up to ${String(USERNAME_MAX_CHARACTERS)} characters, none of them / or :.`,
  );
}

function parentIn({ organizations }: TreeView, text = ""): string {
  const parent = organizations.find(text);
  if (parent === undefined) throw new AppError("not_found", `There is no organisation ${text}.`);
  return parent;
}

function requireDepth(depth: number): void {
  if (depth <= USER_TREE_DEPTH_MAX) return;
  throw new AppError("too_large", `Organisations lie at most ${String(USER_TREE_DEPTH_MAX)} below one another.`, {
    details: { limit: "USER_TREE_DEPTH_MAX" },
  });
}

async function requireFree({ kv }: TreeView, key: string, text: string): Promise<void> {
  if ((await kv.get(key)) !== undefined) throw new AppError("conflict", text);
}

function placing(record: UserRecord): readonly KvOperation[] {
  const { id, username, parent } = record;
  return [
    { kind: "put", key: USERS + username, value: encodeJson(record) },
    { kind: "put", key: idKey(id), value: encodeJson({ username }) },
    { kind: "put", key: memberKey(parent, username), value: encodeJson({ id }) },
  ];
}

function placingOrganization(record: OrganizationRecord): readonly KvOperation[] {
  const { id, parent, username } = record;
  return [putOrganization(record), { kind: "put", key: memberKey(parent, username), value: encodeJson({ id }) }];
}

function putOrganization(record: OrganizationRecord): KvOperation {
  return { kind: "put", key: organizationKey(record.id), value: encodeJson(record) };
}

/** Without the mark of a first password. */
function lasting({ firstPasswordUntilMs: _, ...record }: UserRecord): UserRecord {
  return record;
}

function deletion(key: string): KvOperation {
  return { kind: "delete", key };
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

function isActiveAdministrator({ active, rights }: User): boolean {
  return active && isAdministrator(rights);
}

function noNode(fullname: string): AppError {
  return new AppError("not_found", `There is no user or organisation ${fullname}.`);
}

function unknownNode(id: string): AppError {
  return new AppError("not_found", `There is no user or organisation with the id ${id}.`);
}

function tooMany(what: string, limit: string, max: number): AppError {
  return new AppError("too_large", `A tenant has at most ${String(max)} ${what}.`, { details: { limit } });
}
