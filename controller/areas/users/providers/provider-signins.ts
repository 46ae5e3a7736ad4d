import { AppError, isAppError } from "../../../../common/errors.ts";
import { OPENID_SUBJECT_MAX_CHARACTERS, USERNAME_MAX_CHARACTERS } from "../../../../common/limits.ts";
import { beginningOf } from "../../../../common/text/cut.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Audit } from "../../audit/index.ts";
import { requireNoDuty, requirePermission, systemPrincipal, type Principal } from "../../permissions/index.ts";
import type { Tenant, Tenants } from "../../tenants/index.ts";
import type { Activity } from "../directory/activity.ts";
import type { Credentials, Verified } from "../credentials/credentials.ts";
import type { UserDirectory } from "../directory/directory.ts";
import { required } from "../directory/reader.ts";
import type { LinkStore } from "./link-store.ts";
import { isName } from "../directory/places.ts";
import { NO_RIGHTS, requireOwnSignIn, type EffectiveRights } from "../rights/effective-rights.ts";
import type { UserRecord, UserStore } from "../store.ts";
import type { PendingLink, ProviderAccount, ProviderSignIn, SignedIn, Opening } from "../types.ts";

interface Dependencies {
  readonly runtime: Runtime;
  readonly tenants: Tenants;
  readonly audit: Audit;
  readonly users: UserStore;
  readonly links: LinkStore;
  readonly directory: UserDirectory;
  readonly powers: EffectiveRights;
  readonly credentials: Credentials;
  readonly activity: Activity;
  readonly open: (verified: Verified, request: Opening) => Promise<SignedIn>;
}

const ACTION = "sign in by OpenID Connect";

/**
 * Users who sign in through an OpenID provider. An account is linked to a user in two cases only: the user was created
 * for it, or a person with the right to do so linked it. An equal name or e-mail address never links an account.
 */
export class ProviderSignIns {
  readonly #runtime: Runtime;
  readonly #tenants: Tenants;
  readonly #audit: Audit;
  readonly #users: UserStore;
  readonly #links: LinkStore;
  readonly #directory: UserDirectory;
  readonly #powers: EffectiveRights;
  readonly #credentials: Credentials;
  readonly #activity: Activity;
  readonly #open: Dependencies["open"];

  constructor(parts: Dependencies) {
    const { runtime, tenants, audit, users, links, directory, powers, credentials, open } = parts;
    this.#runtime = runtime;
    this.#tenants = tenants;
    this.#audit = audit;
    this.#users = users;
    this.#links = links;
    this.#directory = directory;
    this.#powers = powers;
    this.#credentials = credentials;
    this.#activity = parts.activity;
    this.#open = open;
  }

  /**
   * Signs in an account that the provider has verified. Sets the groups that the provider governs. Then requires the
   * code of a second factor, like a sign-in by password. `AppError("denied")` for an account without an active user.
   */
  async signIn(request: ProviderSignIn): Promise<SignedIn> {
    const tenant = await this.#tenants.get(request.tenant);
    if (tenant === undefined) throw new AppError("unavailable", `The tenant ${request.tenant} is not there.`);
    const found = await this.#userOf(tenant, request);
    if (found === undefined || !(await this.#activity.isActive(found))) {
      await this.#record(request, found?.username ?? "", "denied");
      throw refused();
    }
    const user = await this.#grouped(tenant, found, request);
    await this.#record(request, user.username, "ok");
    const verified = { tenant, user };
    await this.#credentials.requireSecondFactor(verified, request);
    return this.#open(verified, request);
  }

  /** Begins to link the caller's own account. Needs the password: a stolen session is not enough. */
  async beginLink(principal: Principal, password: string): Promise<PendingLink> {
    requireOwnSignIn(principal);
    requireNoDuty(principal);
    const { tenant, username, epoch } = await this.#credentials.again(principal, password);
    return { tenant, username, epoch };
  }

  /**
   * Completes the link: from now on the account may sign in as the caller. `principal` may be read-only, because the
   * password given to `beginLink` permits this change. `AppError("deadline")` if another user is signed in by now, or
   * if the user has changed since `beginLink`.
   */
  async finishLink(principal: Principal, pending: PendingLink, account: ProviderAccount): Promise<void> {
    const { tenant, username, epoch } = pending;
    const user = (await this.#users.get(tenant, username))?.record;
    const isSame = principal.tenant === tenant && principal.user === username;
    if (!isSame || user?.epoch !== epoch || !(await this.#activity.isActive(user)))
      throw new AppError("deadline", "That took too long, or another is signed in: begin again.");
    await this.#changing(principal, "link an account of the OpenID provider", () => this.#links.link(user, account));
  }

  /** The caller's own account at the provider; undefined without one. */
  async own({ tenant, user }: Principal): Promise<ProviderAccount | undefined> {
    return (await this.#users.get(tenant, user))?.record.openId;
  }

  /**
   * Removes the caller's own link. Needs the password, so that a user without a password cannot remove the only way to
   * sign in. Ends every session.
   */
  async unlinkOwn(principal: Principal, password: string): Promise<void> {
    requireOwnSignIn(principal);
    requireNoDuty(principal);
    const user = await this.#credentials.again(principal, password);
    await this.#changing(principal, "unlink the account of the OpenID provider", () =>
      this.#links.unlink(user, this.#newEpoch()),
    );
  }

  /** The account of a user at the provider; undefined without one. */
  async of(principal: Principal, id: string): Promise<ProviderAccount | undefined> {
    requirePermission(principal, "users:read");
    return (await this.#byId(principal, id)).openId;
  }

  /** Links an account to a user, so that the account may sign in as that user. Ends the user's sessions. */
  async link(principal: Principal, id: string, account: ProviderAccount): Promise<void> {
    requirePermission(principal, "users:write");
    const user = await this.#byId(principal, id);
    await this.#powers.requireAtLeast(principal, user);
    await this.#links.link(user, account, this.#newEpoch());
  }

  /** Removes the link of a user and ends the user's sessions. */
  async unlink(principal: Principal, id: string): Promise<void> {
    requirePermission(principal, "users:write");
    const user = await this.#byId(principal, id);
    await this.#powers.requireAtLeast(principal, user);
    await this.#links.unlink(user, this.#newEpoch());
  }

  async #byId(principal: Principal, id: string): Promise<UserRecord> {
    const username = await this.#directory.usernameOf(principal, id);
    return (await required(this.#users, principal.tenant, username)).record;
  }

  async #userOf(tenant: Tenant, request: ProviderSignIn): Promise<UserRecord | undefined> {
    const linked = await this.#links.find(tenant.name, request.account);
    if (linked !== undefined || !request.creates) return linked;
    const { username } = request.profile;
    if (username === undefined || !isName(username) || (await this.#isClaimed(tenant.name, username))) return undefined;
    try {
      await this.#create(tenant, username, request);
    } catch (error) {
      // A local user has that name, or another call for this account was first. The link decides which.
      if (!isAppError(error, "conflict")) throw error;
    }
    return this.#links.find(tenant.name, request.account);
  }

  /**
   * True if groups name this user although the user does not exist yet. A new user with that name would get those
   * rights.
   */
  async #isClaimed(tenant: string, username: string): Promise<boolean> {
    const powersOf = (name: string) => this.#powers.of({ tenant, username: name, rights: NO_RIGHTS, groups: [] });
    const [one, everyone] = await Promise.all([powersOf(username), powersOf("")]);
    return JSON.stringify(one?.groups) !== JSON.stringify(everyone?.groups);
  }

  async #create(tenant: Tenant, username: string, request: ProviderSignIn): Promise<void> {
    const { account, groups, profile, traceparent } = request;
    const { firstname, lastname, email } = profile;
    const details = {
      ...(firstname !== undefined && { firstname }),
      ...(lastname !== undefined && { lastname }),
      ...(email !== undefined && { email: [email] }),
      auth: "openid",
    };
    const password = Buffer.from(this.#runtime.random.bytes(32)).toString("base64url");
    const generated = { password, isGenerated: true } as const;
    await this.#asSystem(tenant, request, username, `make the user ${username} by OpenID Connect`, () =>
      this.#directory.create(systemPrincipal(tenant.name, tenant.ospace, traceparent), {
        username,
        ...generated,
        rights: NO_RIGHTS,
        groups,
        details,
        openId: account,
      }),
    );
  }

  /** Sets the governed groups; other groups stay. If the groups change, earlier sessions of the user end. */
  async #grouped(tenant: Tenant, user: UserRecord, request: ProviderSignIn): Promise<UserRecord> {
    const { groups, governed, traceparent } = request;
    const isSame = governed.every((group) => user.groups.includes(group) === groups.includes(group));
    if (isSame) return user;
    const { username } = user;
    const principal = systemPrincipal(tenant.name, tenant.ospace, traceparent);
    await this.#asSystem(tenant, request, username, `set groups by OpenID Connect: ${groups.join(", ")}`, () =>
      this.#directory.govern(principal, username, { groups, governed }),
    );
    const changed = (await this.#users.get(tenant.name, username))?.record;
    if (!changed?.active || changed.id !== user.id) throw refused();
    return changed;
  }

  /**
   * Makes a change in the name of the platform. Like all changes, it gets an audit entry, and is refused while none can
   * be written.
   */
  async #asSystem(
    tenant: Tenant,
    request: ProviderSignIn,
    username: string,
    action: string,
    change: () => Promise<unknown>,
  ): Promise<void> {
    await this.#audit.ready(tenant.name);
    await change();
    const { remote, traceparent } = request;
    const entry = { tenant: tenant.name, user: username, permission: "users:write", action, remote, traceparent };
    await this.#audit.record({ ...entry, outcome: "ok", code: "ok" });
  }

  async #record(request: ProviderSignIn, username: string, code: "ok" | "denied"): Promise<void> {
    const { tenant, account, remote, traceparent } = request;
    // The account has no user here. The entry names the account, so that an administrator can link it.
    const whose = JSON.stringify(beginningOf(account.subject, OPENID_SUBJECT_MAX_CHARACTERS));
    const action = username === "" ? `${ACTION}: ${whose}` : ACTION;
    const user = beginningOf(username, USERNAME_MAX_CHARACTERS);
    const entry = { tenant, user, permission: "signin", action, remote, traceparent };
    await this.#audit.record({ ...entry, outcome: code, code });
  }

  async #changing(principal: Principal, action: string, change: () => Promise<void>): Promise<void> {
    const { tenant, user, remote = "", traceparent } = principal;
    const entry = { tenant, user, permission: "signin", action, remote, traceparent };
    await this.#audit.ready(tenant);
    try {
      await change();
    } catch (error) {
      const code = isAppError(error) ? error.code : "internal";
      await this.#audit.record({ ...entry, outcome: "failed", code });
      throw error;
    }
    await this.#audit.record({ ...entry, outcome: "ok", code: "ok" });
  }

  #newEpoch(): string {
    return Buffer.from(this.#runtime.random.bytes(12)).toString("base64url");
  }
}

/**
 * One error for every reason, so that the provider's users do not learn which users exist here. The audit trail has the
 * reason.
 */
function refused(): AppError {
  return new AppError("denied", "That account of the provider may not sign in here.", {
    details: { reason: "account" },
  });
}
