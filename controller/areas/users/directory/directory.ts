import { AppError } from "../../../../common/errors.ts";
import { newStamp, requireExpected, revisionOf, type Expected, type Revised } from "../../../../common/revisions.ts";
import type { Runtime } from "../../../runtime.ts";
import type { GroupService } from "../../groups/index.ts";
import { requireNoDuty, requirePermission, type Principal } from "../../permissions/index.ts";
import { NO_DETAILS, requireTimeZone } from "./details.ts";
import { DirectoryReader, type DirectoryReaderDependencies, required } from "./reader.ts";
import { checkHome } from "../pages/start-pages.ts";
import { isNarrower, ofUser, type LeftWork } from "../rights/left-work.ts";
import { isActiveAdministrator, Members } from "./members.ts";
import { UserWrites } from "./user-writes.ts";
import { OrganizationChanges } from "./organization-changes.ts";
import { ROOT_ID } from "./organizations.ts";
import { ChosenPasswords } from "../credentials/chosen-passwords.ts";
import type { Passwords } from "../credentials/passwords.ts";
import { checkName, newNodeId, unknownNode } from "./places.ts";
import {
  isAdministrator,
  NO_RIGHTS,
  requireGrouping,
  requireOwnSignIn,
  requireRights,
  type EffectiveRights,
} from "../rights/effective-rights.ts";
import type { UserRecord, UserStore } from "../store.ts";
import type {
  AuthoredWork,
  MadeOrganization,
  NewOrganization,
  NewUser,
  NodeChange,
  User,
  UserChange,
} from "../types.ts";

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

/** The user that is changed. */
interface Changed {
  readonly id: string;
  readonly username: string;
  readonly expected: Expected | undefined;
}

/** Makes a change and writes an audit entry with this action, this permission and the affected user (`object`). */
export type Recorded = <T>(
  principal: Principal,
  entry: { readonly action: string; readonly permission: string; readonly object: string },
  change: () => Promise<T>,
) => Promise<T>;

/** Users and organisations of each tenant, as a tree. */
export class UserDirectory {
  readonly reader: DirectoryReader;
  readonly #runtime: Runtime;
  readonly #users: UserStore;
  readonly #passwords: Passwords;
  readonly #chosen: ChosenPasswords;
  readonly #writes: UserWrites;
  readonly #authored: readonly AuthoredWork[];
  readonly #left: LeftWork;
  readonly #organizations: OrganizationChanges;
  readonly #powers: EffectiveRights;
  readonly #again: DirectoryDependencies["again"];
  readonly #recorded: Recorded;
  readonly #endTokens: DirectoryDependencies["endTokens"];

  constructor(dependencies: DirectoryDependencies) {
    const { runtime, users, tree, passwords, authored, groups, powers, again, recorded } = dependencies;
    this.#endTokens = dependencies.endTokens;
    this.#runtime = runtime;
    this.#users = users;
    this.#passwords = passwords;
    this.#authored = authored;
    this.#left = dependencies.left;
    this.#chosen = new ChosenPasswords(passwords, dependencies.firstPasswordUntilMs);
    const members = new Members(users, powers);
    this.#writes = new UserWrites({ ...runtime, users, tree, members, powers, groups });
    this.#organizations = new OrganizationChanges({ runtime, tree, members, left: dependencies.left });
    this.reader = new DirectoryReader(dependencies);
    this.#powers = powers;
    this.#again = again;
    this.#recorded = recorded;
  }

  /** Creates a user. `AppError("conflict")` if another user has that name, or an organisation in the same place. */
  async create(principal: Principal, user: NewUser, expected?: Expected): Promise<User> {
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
      ...{ createdMs: nowMs, changedMs: nowMs },
      // Not a first password: no person knows the password of a user who signs in through a provider.
      ...(openId
        ? { openId, hash: await this.#chosen.hash(principal, user) }
        : await this.#chosen.first(principal, user)),
      ...{ epoch: this.#newEpoch(), stamp: newStamp(principal.user, this.#runtime) },
    };
    return this.#writes.insert(record, { parent: user.parent, expected });
  }

  createOrganization(principal: Principal, wanted: NewOrganization, expected?: Expected): Promise<MadeOrganization> {
    requirePermission(principal, "users:write");
    return this.#organizations.create(principal, wanted, expected);
  }

  /** Like `Users.update`. */
  async update(principal: Principal, username: string, change: UserChange): Promise<User> {
    requirePermission(principal, "users:write");
    const { details, ...others } = change;
    if (change.rights !== undefined) requireRights(principal, change.rights);
    return this.#writes.edit(principal, username, async (record) => {
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
    return this.#writes.edit(principal, username, async (record) => {
      await this.#powers.requireAtLeast(principal, record);
      const next = [...record.groups.filter((group) => !governed.includes(group)), ...groups];
      requireGrouping(principal, record, next);
      return { ...record, groups: next, epoch: this.#newEpoch() };
    });
  }

  async setPassword(principal: Principal, username: string, password: string, isGenerated = false): Promise<void> {
    requirePermission(principal, "users:write");
    const first = await this.#chosen.first(principal, { username, password, isGenerated });
    await this.#writes.edit(principal, username, async (record) => {
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
    const hash = await this.#chosen.hash(principal, { username, password });
    await this.#writes.edit(principal, username, async (record) => {
      if (record.epoch !== epoch) throw new AppError("conflict", "The user was changed meanwhile: sign in again.");
      return { ...lasting(record), hash, epoch: this.#newEpoch() };
    });
    await this.#endTokens(own);
  }

  /**
   * Changes a user or an organisation; `AppError("not_found")` for an unknown id. To change the own password, the
   * caller must give the old one. A new password for another user has its own audit action. Warns of work that
   * continues with rights the user loses, and ignored members (organisations do not have every member of users).
   */
  async change(principal: Principal, id: string, change: NodeChange, expected?: Expected): Promise<Revised> {
    requirePermission(principal, "users:write");
    const found = await this.reader.located(principal, id);
    if (found.otype === "org") return this.#organizations.change(principal, id, { ...change, expected });
    const { username } = found;
    const whose = { id, username, expected };
    if (change.password === undefined) return this.#changeUser(principal, whose, change);
    const isOwn = username === principal.user;
    const action = isOwn ? "change the own password" : "set the password of another user";
    return this.#recorded(principal, { action, permission: "users:write", object: username }, async () => {
      if (!isOwn) return this.#changeUser(principal, whose, change);
      await this.#proveOwn(principal, change.presentPassword);
      const revised = await this.#changeUser(principal, whose, change);
      await this.#endTokens({ tenant: principal.tenant, username });
      return revised;
    });
  }

  async #proveOwn(principal: Principal, presentPassword = ""): Promise<void> {
    requireOwnSignIn(principal);
    if (presentPassword === "")
      throw new AppError("denied", "One's own password is changed with the present one: send it as password.");
    await this.#again(principal, presentPassword);
  }

  async #changeUser(principal: Principal, { id, username, expected }: Changed, change: NodeChange): Promise<Revised> {
    const { isAdmin, password, ...others } = change;
    let narrows = false;
    const chosen = password === undefined ? undefined : await this.#chosen.of(principal, { username, password });
    if (isAdmin === true) requireRights(principal, { role: "administrator" });
    const changed = await this.#writes.edit(principal, username, async (record) => {
      if (record.id !== id) throw unknownNode(id);
      await this.#powers.requireAtLeast(principal, record);
      requireExpected(expected, `The user ${username}`, record);
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
    const warnings = narrows ? await this.#left.told(principal, ofUser(username)) : [];
    return { revision: revisionOf(changed), warnings };
  }

  /**
   * Removes a user, or an empty organisation. Answers the work that stops with its author, and the work that continues.
   * `AppError("conflict")` for the last active administrator and for an organisation that is not empty.
   */
  async remove(principal: Principal, id: string, expected?: Expected): Promise<readonly string[]> {
    requirePermission(principal, "users:write");
    const found = await this.reader.located(principal, id);
    if (found.otype === "org") {
      await this.#organizations.remove(principal, id, expected);
      return [];
    }
    const { username } = found;
    const ends = await Promise.all(this.#authored.map((work) => work.endsWith(principal, username)));
    await this.#writes.remove(principal, { id, username, expected });
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
    return this.#writes.move(principal, { id, username, to });
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
    await this.#writes.edit(principal, principal.user, ({ home: _before, ...record }) =>
      Promise.resolve({ ...record, ...(home !== "" && { home }) }),
    );
  }

  /** Gives an id and a place in the tree to users that were stored before the tree existed. Idempotent. */
  async repair(tenant: string): Promise<void> {
    for await (const page of this.#users.pages(tenant)) {
      for (const { record } of page) if (record.id === "") await this.#writes.place(tenant, record.username);
    }
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
