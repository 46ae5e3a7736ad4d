import { createHmac } from "node:crypto";
import { AppError, isAppError } from "../../../common/errors.ts";
import {
  BASIC_CACHE_MAX_ENTRIES,
  BASIC_CACHE_MS,
  SESSION_REMEMBERED_MS,
  SESSION_SWEEP_MS,
  USER_CHANGE_ATTEMPTS_MAX,
  USERNAME_MAX_CHARACTERS,
} from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { Audit } from "../audit/index.ts";
import { requireMayChange, requirePermission, ROLES, systemPrincipal, type Principal } from "../permissions/index.ts";
import type { Tenant, Tenants } from "../tenants/index.ts";
import { Passwords } from "./passwords.ts";
import { Sessions } from "./sessions.ts";
import { SignInSlowdown } from "./slowdown.ts";
import { SessionStore, UserStore, type UserRecord } from "./store.ts";
import type { NewUser, SignedIn, SignInRequest, User, UserChange, Users } from "./types.ts";

export interface UserDependencies {
  readonly runtime: Runtime;
  readonly stores: Stores;
  readonly tenants: Tenants;
  readonly audit: Audit;
}

export interface Administrator {
  readonly username: string;
  /** The generated password of a new administrator: to be shown once. */
  readonly generatedPassword?: string;
  readonly created: boolean;
}

interface Attempt {
  readonly tenant: Tenant | undefined;
  readonly username: string;
  readonly password: string;
  readonly remote: string;
  readonly traceparent: string;
  readonly action: string;
}

interface Verified {
  readonly tenant: Tenant;
  readonly user: UserRecord;
}

interface CachedLogin {
  readonly tenant: Tenant;
  readonly username: string;
  readonly epoch: string;
  readonly untilMs: number;
}

// No control characters, no colon (it ends the name in Basic credentials), no slash, no space at the ends.
const USERNAME = /^(?! )[^\p{C}/:]+(?<! )$/u;
const WRONG = "Company, user name or password are wrong.";

export class UserService implements Users {
  readonly #runtime: Runtime;
  readonly #tenants: Tenants;
  readonly #audit: Audit;
  readonly #users: UserStore;
  readonly #sessions: Sessions;
  readonly #passwords = new Passwords();
  readonly #slowdown: SignInSlowdown;
  /** Verified Basic credentials by a digest only this process can make. */
  readonly #logins = new Map<string, CachedLogin>();
  readonly #checks = new Map<string, Promise<Verified | undefined>>();
  readonly #digestKey: Uint8Array;
  #cancelSweep: () => void = () => {};

  constructor({ runtime, stores, tenants, audit }: UserDependencies) {
    this.#runtime = runtime;
    this.#tenants = tenants;
    this.#audit = audit;
    this.#users = new UserStore(stores, runtime.clock);
    this.#sessions = new Sessions({ runtime, store: new SessionStore(stores, runtime.clock) });
    this.#slowdown = new SignInSlowdown(runtime.clock);
    this.#digestKey = runtime.random.bytes(32);
  }

  /** Begins to sweep away sessions that are over, until `stop`. */
  start(): void {
    this.#cancelSweep = this.#runtime.clock.after(SESSION_SWEEP_MS, () => {
      this.#sessions
        .sweep()
        .catch((error: unknown) => this.#runtime.log.warn({ err: error }, "sessions could not be swept"));
      this.start();
    });
  }

  stop(): void {
    this.#cancelSweep();
  }

  async signIn(request: SignInRequest): Promise<SignedIn> {
    const { username, password, remote, traceparent } = request;
    const tenant = await this.#tenantOf(request.company);
    const verified = await this.#check({ tenant, username, password, remote, traceparent, action: "sign in" });
    if (verified === undefined) throw new AppError("denied", WRONG);
    const remember = request.remember === true;
    const session = await this.#sessions.open(verified.user, { ospace: verified.tenant.ospace, remember });
    return remember ? { session, lastingMs: SESSION_REMEMBERED_MS } : { session };
  }

  async signOut(principal: Principal, session: string): Promise<void> {
    requireMayChange(principal);
    return this.#sessions.close(session);
  }

  async bySession(session: string, traceparent: string): Promise<Principal | undefined> {
    const record = await this.#sessions.use(session);
    if (record === undefined) return undefined;
    const user = await this.#current(record.tenant, record.username, record.epoch);
    return user === undefined ? undefined : principalOf(user, record.ospace, traceparent);
  }

  /** For the sign-in gate: `login` is `<company>.<username>`. */
  async byPassword(
    credentials: { readonly login: string; readonly password: string; readonly remote: string },
    traceparent: string,
  ): Promise<Principal | undefined> {
    const { login, password, remote } = credentials;
    const digest = this.#digest(login, password);
    const cached = await this.#cachedLogin(digest, traceparent);
    if (cached !== undefined) return cached;
    const { tenant, username } = await this.#splitLogin(login);
    const verified = await this.#check({ tenant, username, password, remote, traceparent, action: "basic sign-in" });
    if (verified === undefined) return undefined;
    this.#keepLogin(digest, verified);
    return principalOf(verified.user, verified.tenant.ospace, traceparent);
  }

  /**
   * Makes the tenant's administrator when there is no user of that name. Without a password one is generated and
   * answered. An existing one stays as is.
   */
  async ensureAdministrator(wanted: {
    readonly tenant: string;
    readonly username: string;
    readonly password?: string;
  }): Promise<Administrator> {
    const { tenant, username } = wanted;
    const principal = await this.#system(tenant);
    if ((await this.find(principal, username)) !== undefined) return { username, created: false };
    const password = wanted.password ?? this.#newPassword();
    try {
      await this.create(principal, { username, password, rights: { role: "administrator" } });
    } catch (error) {
      // Another controller of the same cluster was first.
      if (isAppError(error, "conflict")) return { username, created: false };
      throw error;
    }
    return { username, created: true, ...(wanted.password === undefined && { generatedPassword: password }) };
  }

  /**
   * For an operator with access to the store, not for the network: a lost password is replaced by a generated one,
   * which is answered. Every session of the user ends. Refused while it could not be put on record.
   */
  async resetPassword(tenant: string, username: string): Promise<string> {
    const principal = await this.#system(tenant);
    await this.#audit.ready(tenant);
    const password = this.#newPassword();
    await this.setPassword(principal, username, password);
    const entry = {
      tenant,
      user: "",
      permission: "users:write",
      action: `reset the password of ${username}`,
      remote: "",
      traceparent: "",
    };
    await this.#audit.write({ ...entry, outcome: "ok", code: "ok" });
    return password;
  }

  async create(principal: Principal, user: NewUser): Promise<User> {
    requirePermission(principal, "users:write");
    const { username, rights } = user;
    if (!isUsername(username))
      throw new AppError(
        "invalid",
        `${JSON.stringify(username)} is no user name: up to ${String(USERNAME_MAX_CHARACTERS)} characters, none of them / or :.`,
      );
    const nowMs = this.#runtime.clock.nowMs();
    const record: UserRecord = {
      tenant: principal.tenant,
      username,
      rights,
      fullname: user.fullname ?? username,
      groups: user.groups ?? [],
      active: user.active ?? true,
      createdMs: nowMs,
      changedMs: nowMs,
      hash: await this.#passwords.hash(user.password),
      epoch: this.#newEpoch(),
    };
    if (!(await this.#users.put(record, 0))) throw new AppError("conflict", `There is already a user ${username}.`);
    return visible(record);
  }

  async update(principal: Principal, username: string, change: UserChange): Promise<User> {
    requirePermission(principal, "users:write");
    const endsSessions = change.rights !== undefined || change.active !== undefined || change.groups !== undefined;
    return this.#change(principal.tenant, username, (record) => ({
      ...record,
      ...change,
      ...(endsSessions && { epoch: this.#newEpoch() }),
    }));
  }

  async setPassword(principal: Principal, username: string, password: string): Promise<void> {
    requirePermission(principal, "users:write");
    const hash = await this.#passwords.hash(password);
    await this.#change(principal.tenant, username, (record) => ({ ...record, hash, epoch: this.#newEpoch() }));
  }

  async find(principal: Principal, username: string): Promise<User | undefined> {
    requirePermission(principal, "users:read");
    const stored = isUsername(username) ? await this.#users.get(principal.tenant, username) : undefined;
    return stored === undefined ? undefined : visible(stored.record);
  }

  /** `AppError("not_found")` for an unknown tenant. */
  async #system(tenant: string): Promise<Principal> {
    return systemPrincipal(tenant, await this.#tenants.ospaceOf(tenant), "");
  }

  async #change(tenant: string, username: string, edit: (record: UserRecord) => UserRecord): Promise<User> {
    // After a lost race the edit is made again, on what the other write left.
    for (let attempt = 1; attempt <= USER_CHANGE_ATTEMPTS_MAX; attempt++) {
      const stored = isUsername(username) ? await this.#users.get(tenant, username) : undefined;
      if (stored === undefined) throw new AppError("not_found", `There is no user ${username}.`);
      const changed = { ...edit(stored.record), changedMs: this.#runtime.clock.nowMs() };
      if (await this.#users.put(changed, stored.revision)) return visible(changed);
    }
    throw new AppError("conflict", `Others change the user ${username} all the time.`);
  }

  /** The user while active and unchanged since `epoch`. */
  async #current(tenant: string, username: string, epoch: string): Promise<UserRecord | undefined> {
    const record = (await this.#users.recent(tenant, username))?.record;
    return record !== undefined && record.active && record.epoch === epoch ? record : undefined;
  }

  /**
   * Equal attempts at the same time are one: a page that loads with many Basic calls costs one check and counts once.
   */
  #check(attempt: Attempt): Promise<Verified | undefined> {
    const key = this.#digest(`${attempt.remote} ${attempt.tenant?.name ?? ""} ${attempt.username}`, attempt.password);
    let check = this.#checks.get(key);
    if (check === undefined) {
      check = this.#verify(attempt).finally(() => this.#checks.delete(key));
      this.#checks.set(key, check);
    }
    return check;
  }

  async #verify(attempt: Attempt): Promise<Verified | undefined> {
    const { tenant, username, password, remote } = attempt;
    const counted = this.#slowdown.attempt(
      `${tenant?.name ?? ""}/${username.slice(0, USERNAME_MAX_CHARACTERS)}`,
      remote,
    );
    const user =
      tenant === undefined || !isUsername(username)
        ? undefined
        : (await this.#users.get(tenant.name, username))?.record;
    const matches = await this.#passwords.matches(password, user?.hash);
    const verified =
      tenant !== undefined && user !== undefined && matches && user.active ? { tenant, user } : undefined;
    if (verified !== undefined) counted.succeeded();
    await this.#recordAttempt(attempt, verified !== undefined);
    return verified;
  }

  async #recordAttempt(attempt: Attempt, ok: boolean): Promise<void> {
    const { tenant, username, remote, traceparent, action } = attempt;
    const outcome = ok ? ({ outcome: "ok", code: "ok" } as const) : ({ outcome: "denied", code: "denied" } as const);
    const entry = {
      tenant: tenant?.name ?? "",
      user: username.slice(0, USERNAME_MAX_CHARACTERS),
      permission: "signin",
      action,
      remote,
      traceparent,
      ...outcome,
    };
    // Signing in stays possible without it, so that users can inspect the fault; the gate refuses changes.
    await this.#audit.record(entry);
  }

  async #tenantOf(company: string | undefined): Promise<Tenant | undefined> {
    if (company !== undefined && company !== "") return this.#tenants.get(company);
    const only = await this.#tenants.only();
    if (only === undefined)
      throw new AppError("invalid", "company is missing: there are several.", { details: { fields: ["company"] } });
    return only;
  }

  /** User names may have dots, company names may not; where there is only one company its name may be left out. */
  async #splitLogin(login: string): Promise<{ readonly tenant: Tenant | undefined; readonly username: string }> {
    const dot = login.indexOf(".");
    const named = dot > 0 ? await this.#tenants.get(login.slice(0, dot)) : undefined;
    if (named !== undefined) return { tenant: named, username: login.slice(dot + 1) };
    return { tenant: await this.#tenants.only(), username: login };
  }

  async #cachedLogin(digest: string, traceparent: string): Promise<Principal | undefined> {
    const login = this.#logins.get(digest);
    if (login === undefined) return undefined;
    const user =
      login.untilMs > this.#runtime.clock.monotonicMs()
        ? await this.#current(login.tenant.name, login.username, login.epoch)
        : undefined;
    if (user !== undefined) return principalOf(user, login.tenant.ospace, traceparent);
    this.#logins.delete(digest);
    return undefined;
  }

  #keepLogin(digest: string, { tenant, user }: Verified): void {
    const [oldest] = this.#logins.keys();
    if (this.#logins.size >= BASIC_CACHE_MAX_ENTRIES && oldest !== undefined) this.#logins.delete(oldest);
    this.#logins.set(digest, {
      tenant,
      username: user.username,
      epoch: user.epoch,
      untilMs: this.#runtime.clock.monotonicMs() + BASIC_CACHE_MS,
    });
  }

  #digest(login: string, password: string): string {
    return createHmac("sha256", this.#digestKey)
      .update(JSON.stringify([login, password]))
      .digest("base64");
  }

  #newPassword(): string {
    return Buffer.from(this.#runtime.random.bytes(15)).toString("base64url");
  }

  #newEpoch(): string {
    return Buffer.from(this.#runtime.random.bytes(12)).toString("base64url");
  }
}

function isUsername(text: string): boolean {
  return text.length <= USERNAME_MAX_CHARACTERS && USERNAME.test(text);
}

function visible(record: UserRecord): User {
  const { tenant, username, fullname, groups, rights, active, createdMs, changedMs } = record;
  return { tenant, username, fullname, groups, rights, active, createdMs, changedMs };
}

function principalOf(user: UserRecord, ospace: string, traceparent: string): Principal {
  const { grants, data } = "role" in user.rights ? ROLES[user.rights.role] : user.rights;
  return { tenant: user.tenant, ospace, user: user.username, groups: user.groups, grants, data, traceparent };
}
