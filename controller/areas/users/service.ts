import { AppError, isAppError } from "../../../common/errors.ts";
import { SESSION_REMEMBERED_MS, SESSION_SWEEP_MS } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { SecretBox } from "../../secrets/index.ts";
import type { Stores } from "../../store/engine.ts";
import type { Audit } from "../audit/index.ts";
import type { GroupService, Member } from "../groups/index.ts";
import type { Objects } from "../objects/index.ts";
import {
  requireMayChange,
  requireNoDuty,
  requireNoPartToken,
  requirePermission,
  systemPrincipal,
  type Principal,
} from "../permissions/index.ts";
import type { Tenants } from "../tenants/index.ts";
import { Activity } from "./directory/activity.ts";
import { UserDirectory } from "./directory/directory.ts";
import { UserChanges, type ChangedUser } from "./changes.ts";
import type { BasicCredentials, Credentials, Verified } from "./credentials/credentials.ts";
import { PendingRequirements, type PolicyChange, type SignInPolicy } from "./second-factor/pending-requirements.ts";
import { StartPages } from "./pages/start-pages.ts";
import { LeftWork } from "./rights/left-work.ts";
import { LinkStore } from "./providers/link-store.ts";
import { Passwords } from "./credentials/passwords.ts";
import { passwordPolicy, type PasswordPolicy } from "./credentials/password-policy.ts";
import { StopsByPolicy, type PolicyStops } from "./second-factor/policy-stops.ts";
import { ProviderSignIns } from "./providers/provider-signins.ts";
import type { SecondFactors } from "./second-factor/second-factor.ts";
import { Principals } from "./sessions/principals.ts";
import type { Sessions } from "./sessions/sessions.ts";
import { signInParts } from "./credentials/sign-in-parts.ts";
import { digestOf, UserStore, type SessionStore, type UserRecord } from "./store.ts";
import { requireOwnSignIn, requireScopes, EffectiveRights } from "./rights/effective-rights.ts";
import type { Tokens } from "./sessions/tokens.ts";
import { TreeStore } from "./directory/tree-store.ts";
import type {
  AuthoredWork,
  BegunWork,
  CodeRequest,
  NewSecondFactor,
  NewToken,
  NewUser,
  SessionView,
  SignedIn,
  Opening,
  SignInRequest,
  TokenView,
  User,
  UserChange,
  Users,
} from "./types.ts";

export interface UserDependencies {
  readonly runtime: Runtime;
  readonly stores: Stores;
  readonly tenants: Tenants;
  readonly audit: Audit;
  /** Kinds of work that stop when their author is deleted; none when absent. */
  readonly authored?: readonly AuthoredWork[];
  readonly begun?: readonly BegunWork[];
  /** Rights of users as members of groups; absent: users have only the rights given to them directly. */
  readonly groups?: Pick<GroupService, "rightsOf" | "forget" | "onChange" | "requireGroups">;
  /** Needed to apply rules about users; absent: such rules are not applied. */
  readonly objects?: Pick<Objects, "visible">;
  /** Seals second factors; absent: enrolling one is not possible. */
  readonly secrets?: SecretBox;
  /** Words of this installation that do not make a password stronger; none when absent. */
  readonly passwordWords?: readonly string[];
}

/** A policy after a change, with the programs that it stops. */
export interface ChangedPolicy extends SignInPolicy {
  readonly stops: PolicyStops;
}

export interface Administrator {
  readonly username: string;
  /** The generated password of a new administrator, to be shown once. */
  readonly generatedPassword?: string;
  readonly created: boolean;
}

/** The page where people manage their sign-in. */
const ACCOUNT_PATH = "/user/account";

export class UserService implements Users {
  readonly directory: UserDirectory;
  readonly passwordFault: PasswordPolicy;
  /** Users of an OpenID provider. */
  readonly providers: ProviderSignIns;
  readonly #runtime: Runtime;
  readonly #tenants: Tenants;
  readonly #audit: Audit;
  readonly #powers: EffectiveRights;
  readonly #left: LeftWork;
  readonly #users: UserStore;
  readonly #tree: TreeStore;
  readonly #activity: Activity;
  readonly #startPages: StartPages;
  readonly #sessions: Sessions;
  readonly #principals: Principals;
  readonly #credentials: Credentials;
  readonly #changes: UserChanges;
  readonly #sessionStore: SessionStore;
  readonly #tokens: Tokens;
  readonly #factors: SecondFactors;
  readonly #requirements: PendingRequirements;
  readonly #stops: StopsByPolicy;
  readonly #listeners: ((change: ChangedUser) => void)[] = [];
  #cancelSweep: () => void = () => {};

  constructor(dependencies: UserDependencies) {
    const { runtime, stores, tenants, audit, groups, secrets, begun = [] } = dependencies;
    this.passwordFault = passwordPolicy(dependencies.passwordWords ?? []);
    this.#runtime = runtime;
    this.#tenants = tenants;
    this.#audit = audit;
    this.#powers = new EffectiveRights(groups);
    this.#users = new UserStore(stores, runtime.clock);
    this.#startPages = new StartPages(stores);
    this.#tree = new TreeStore(stores, runtime);
    this.#activity = new Activity(this.#tree);
    const passwords = new Passwords(this.passwordFault);
    this.#requirements = new PendingRequirements(stores, runtime.clock, secrets !== undefined);
    this.#left = new LeftWork({ begun, audit });
    const signIn = signInParts({
      ...{ runtime, stores, tenants, audit, secrets, passwords },
      users: this.#users,
      activity: this.#activity,
      current: (tenant, username, epoch) => this.#principals.current(tenant, username, { epoch }),
    });
    this.#sessionStore = signIn.sessionStore;
    this.#sessions = signIn.sessions;
    this.#tokens = signIn.tokens;
    this.#factors = signIn.factors;
    this.#credentials = signIn.credentials;
    this.directory = this.#openDirectory(dependencies, passwords);
    this.#stops = new StopsByPolicy({
      activity: this.#activity,
      requirements: this.#requirements,
      users: this.#users,
      powers: this.#powers,
      tokens: this.#tokens,
      reader: this.directory.reader,
    });
    this.#changes = new UserChanges({
      stores,
      runtime,
      told: (change) => this.#changed(change),
      missed: () => this.#forget(undefined),
    });
    this.#principals = new Principals({
      clock: runtime.clock,
      tenants,
      users: this.#users,
      activity: this.#activity,
      powers: this.#powers,
      requirements: this.#requirements,
      sessions: this.#sessions,
      tokens: this.#tokens,
      follow: (tenant) => this.#changes.follow(tenant),
    });
    this.providers = new ProviderSignIns({
      runtime,
      tenants,
      audit,
      users: this.#users,
      links: new LinkStore(stores, this.#users),
      directory: this.directory,
      powers: this.#powers,
      credentials: this.#credentials,
      activity: this.#activity,
      open: (verified, request) => this.#opened(verified, request),
    });
    groups?.onChange(({ tenant, isRefresh }) => {
      if (isRefresh) this.#drop(tenant);
    });
  }

  #openDirectory({ runtime, groups, objects, authored = [] }: UserDependencies, passwords: Passwords): UserDirectory {
    return new UserDirectory({
      ...{ runtime, groups, objects, passwords, authored },
      users: this.#users,
      tree: this.#tree,
      left: this.#left,
      powers: this.#powers,
      again: (principal, password) => this.#credentials.again(principal, password),
      recorded: (principal, entry, change) => this.#onRecord(principal, entry, change),
      firstPasswordUntilMs: (tenant) => this.#requirements.firstPasswordUntilMs(tenant),
      endTokens: (user) => this.#tokens.removeAllOf(user),
    });
  }

  /**
   * Reports work that continues with rights its user has lost by a change of the group `name`. `isNarrower` answers
   * true for a member who now has fewer rights. Deleted users are not included.
   */
  async leftByGroup(
    principal: Principal,
    { name, isNarrower }: { readonly name: string; readonly isNarrower: (member: Member) => boolean },
  ): Promise<readonly string[]> {
    requirePermission(principal, "perms:write");
    const known = new Map<string, Promise<boolean>>();
    const asked = async (username: string): Promise<boolean> => {
      const user = (await this.#users.get(principal.tenant, username))?.record;
      return user !== undefined && isNarrower(this.#powers.memberOf(user));
    };
    const includes = (username: string): Promise<boolean> => {
      const answer = known.get(username) ?? asked(username);
      known.set(username, answer);
      return answer;
    };
    return this.#left.told(principal, { name, what: "group", includes });
  }

  /** Starts to watch for changes by other controllers, and to remove expired sessions, until `stop`. */
  start(): void {
    this.#changes.start();
    this.#sweepLater();
  }

  async stop(): Promise<void> {
    this.#cancelSweep();
    await this.#changes.stop();
  }

  /** Like `SignIn.onChange`; reports nothing before `start`. */
  onChange(listener: (change: ChangedUser) => void): void {
    this.#listeners.push(listener);
  }

  #changed({ tenant, user, digest }: ChangedUser): void {
    if (digest === undefined) this.#users.forget(tenant, user);
    else this.#forget(digest);
    if (user === undefined) {
      this.#requirements.forget(tenant);
      this.#tree.forget(tenant);
    }
    for (const listener of this.#listeners) listener(user === undefined ? { tenant } : { tenant, user });
  }

  /** Drops the cached sign-in data of the tenant, and all cached sessions and tokens. */
  #drop(tenant: string): void {
    this.#users.forget(tenant, undefined);
    this.#tree.forget(tenant);
    this.#requirements.forget(tenant);
    this.#credentials.forget(tenant);
    this.#forget(undefined);
  }

  #forget(digest: string | undefined): void {
    this.#sessionStore.forget(digest);
    this.#tokens.forget(digest);
  }

  #sweepLater(): void {
    this.#cancelSweep = this.#runtime.clock.after(SESSION_SWEEP_MS, () => {
      this.#sessions
        .sweep()
        .catch((error: unknown) => this.#runtime.log.warn({ err: error }, "sessions could not be swept"));
      this.#sweepLater();
    });
  }

  async signIn(request: SignInRequest): Promise<SignedIn> {
    return this.#opened(await this.#credentials.ofSignIn(request), request);
  }

  /**
   * The second step of `signIn`, with the ticket from the error `CodeNeeded` of the first step. `AppError("deadline")`
   * if the ticket is too old or the user has changed since.
   */
  async signInByCode(request: CodeRequest): Promise<SignedIn> {
    const { ticket, ...verified } = await this.#credentials.ofCode(request);
    return this.#opened(verified, { ...ticket, remote: request.remote, replaced: request.replaced });
  }

  async #opened(
    { tenant, user }: Verified,
    { remember = false, redirect = "", remote, replaced }: Opening,
  ): Promise<SignedIn> {
    const epoch = await this.#activity.epochOf(user);
    if (epoch === undefined) throw new AppError("denied", `${user.username} was made inactive meanwhile.`);
    const session = await this.#sessions.open(user, { ospace: tenant.ospace, remember, remote, epoch });
    if (replaced !== undefined) await this.#sessions.close(replaced);
    const home = (await this.#owes(user))
      ? ACCOUNT_PATH
      : redirect || (user.home ?? (await this.#startPages.get(tenant.name)));
    return { session, home, ...(remember && { lastingMs: SESSION_REMEMBERED_MS }) };
  }

  async signInPolicy(principal: Principal): Promise<SignInPolicy> {
    requirePermission(principal, "users:read");
    return this.#requirements.policy(principal.tenant);
  }

  /** Answers the policy after the change, and the programs that the change would stop. Changes nothing. */
  async previewSignInPolicy(principal: Principal, change: PolicyChange): Promise<ChangedPolicy> {
    requirePermission(principal, "perms:read");
    const { before, after } = await this.#requirements.previewed(principal.tenant, change);
    return { ...after, stops: await this.#stops.between(principal, { before, after }) };
  }

  /**
   * Sets the policy of the caller's tenant; needs `perms:write`. The policy also applies to calls by open sessions,
   * tokens and Basic sign-in. Absent members stay unchanged. Answers the programs that the change stops.
   */
  async setSignInPolicy(principal: Principal, change: PolicyChange): Promise<ChangedPolicy> {
    requirePermission(principal, "perms:write");
    requireNoPartToken(principal);
    const { before, after } = await this.#requirements.previewed(principal.tenant, change);
    const stops = await this.#stops.between(principal, { before, after });
    const policy = await this.#requirements.setPolicy(principal.tenant, change);
    for (const listener of this.#listeners) listener({ tenant: principal.tenant });
    return { ...policy, stops };
  }

  /**
   * Changes the caller's own password from `password` to `next`. Every session and token of the caller ends.
   * `AppError("invalid")` if `next` is too easy to guess.
   */
  async changeOwnPassword(principal: Principal, password: string, next: string): Promise<void> {
    requireOwnSignIn(principal);
    await this.#recorded(principal, "change the own password", async () =>
      this.directory.setOwnPassword(principal, await this.#credentials.again(principal, password), next),
    );
  }

  /**
   * Begins the caller's own second factor. Needs the password: a stolen session is not enough. The factor has no effect
   * until it is confirmed. `AppError("conflict")` if the caller already has a confirmed one.
   */
  async beginSecondFactor(principal: Principal, password: string): Promise<NewSecondFactor> {
    requireOwnSignIn(principal);
    return this.#recorded(principal, "begin a second factor", async () =>
      this.#factors.begin(await this.#credentials.again(principal, password)),
    );
  }

  /** Activates the second factor. Answers recovery codes: shown once, each accepted once. */
  async confirmSecondFactor(principal: Principal, code: string): Promise<readonly string[]> {
    requireOwnSignIn(principal);
    return this.#recorded(principal, "confirm a second factor", async () =>
      this.#factors.confirm(await this.#ownRecord(principal), code),
    );
  }

  /** Removes the caller's own second factor. Needs the password. */
  async removeSecondFactor(principal: Principal, password: string): Promise<void> {
    requireOwnSignIn(principal);
    await this.#recorded(principal, "remove the second factor", async () =>
      this.#factors.remove(await this.#credentials.again(principal, password)),
    );
  }

  /** Number of recovery codes the caller has left; undefined without a second factor. */
  async secondFactor(principal: Principal): Promise<number | undefined> {
    return this.#factors.left(await this.#ownRecord(principal));
  }

  /** Removes the second factor of another user, who lost the device. */
  async dropSecondFactor(principal: Principal, id: string): Promise<void> {
    requirePermission(principal, "users:write");
    const username = await this.directory.usernameOf(principal, id);
    const user = await this.#ownRecord({ ...principal, user: username });
    await this.#powers.requireAtLeast(principal, user);
    await this.#factors.remove(user);
  }

  async #ownRecord({ tenant, user: username }: Pick<Principal, "tenant" | "user">): Promise<UserRecord> {
    const stored = await this.#users.get(tenant, username);
    if (stored === undefined) throw new AppError("not_found", `There is no user ${username}.`);
    return stored.record;
  }

  async signOut(principal: Principal, session: string): Promise<void> {
    requireMayChange(principal);
    return this.#sessions.close(session);
  }

  bySession(session: string, traceparent: string): Promise<Principal | undefined> {
    return this.#principals.bySession(session, traceparent);
  }

  /** As `bySession`, if nothing must be read for it. */
  byKnownSession(session: string, call: Pick<Principal, "traceparent" | "remote">): Principal | undefined {
    return this.#principals.byKnownSession(session, call);
  }

  /** The user with current rights, for running stored work of that user. `undefined`: unknown or inactive. */
  present(tenant: string, username: string): Promise<Principal | undefined> {
    return this.#principals.present(tenant, username);
  }

  /** For the sign-in gate: see `Principals.byToken`. */
  byToken(token: string, traceparent: string): Promise<Principal | undefined> {
    return this.#principals.byToken(token, traceparent);
  }

  /**
   * Creates a token for the caller and answers it; the token is shown once. Needs no permission. At each use the token
   * has only those of its scopes that its owner still has. It ends when the owner changes the own password.
   */
  async makeToken(principal: Principal, wanted: NewToken): Promise<string> {
    requireOwnSignIn(principal);
    requireNoDuty(principal);
    requireScopes(principal, wanted.scopes);
    const { ospace } = principal;
    const record = await this.#ownRecord(principal);
    return this.#recorded(principal, `make the token ${wanted.name}`, () =>
      this.#tokens.make(record, { ...wanted, ospace }),
    );
  }

  /** The caller's own tokens. */
  tokens({ tenant, user: username }: Principal): Promise<readonly TokenView[]> {
    return this.#tokens.list({ tenant, username });
  }

  /** Removes one of the caller's own tokens; `AppError("not_found")` if it does not exist. */
  async removeToken(principal: Principal, id: string): Promise<void> {
    requireOwnSignIn(principal);
    const { tenant, user: username } = principal;
    const remove = (): Promise<boolean> => this.#tokens.remove({ tenant, username }, id);
    if (!(await this.#recorded(principal, "remove a token", remove)))
      throw new AppError("not_found", "There is no such token.");
  }

  /** The caller's own sessions, at most one page. `session` is the session of this call, which is marked as current. */
  sessions({ tenant, user }: Principal, session?: string): Promise<readonly SessionView[]> {
    return this.#sessionsOf(tenant, user, session);
  }

  /** Ends one of the caller's own sessions. Needs the password. `AppError("not_found")` if it does not exist. */
  async endSession(principal: Principal, id: string, password: string): Promise<void> {
    requireOwnSignIn(principal);
    await this.#recorded(principal, "end a session", async () => {
      const user = await this.#credentials.again(principal, password);
      if (!(await this.#sessionStore.removeOf(user, id))) throw new AppError("not_found", "There is no such session.");
    });
  }

  /** Ends all of the caller's own sessions except `session`. Needs the password. */
  async endOtherSessions(principal: Principal, session: string | undefined, password: string): Promise<void> {
    requireOwnSignIn(principal);
    await this.#recorded(principal, "end all other sessions", async () => {
      const user = await this.#credentials.again(principal, password);
      await this.#sessionStore.removeAllOf(user, session);
    });
  }

  /** The sessions of another user. */
  async sessionsOf(principal: Principal, id: string): Promise<readonly SessionView[]> {
    requirePermission(principal, "users:read");
    return this.#sessionsOf(principal.tenant, await this.directory.usernameOf(principal, id));
  }

  /** Ends all sessions and tokens of a user, and answers their number. The password does not change. */
  async endAll(principal: Principal, id: string): Promise<number> {
    requirePermission(principal, "users:write");
    const { tenant } = principal;
    const username = await this.directory.usernameOf(principal, id);
    const stored = await this.#users.get(tenant, username);
    if (stored !== undefined) await this.#powers.requireAtLeast(principal, stored.record);
    const sessions = await this.#sessionStore.of(tenant, username);
    for (const { digest } of sessions) await this.#sessionStore.removeOf({ tenant, username }, digest);
    return sessions.length + (await this.#tokens.removeAllOf({ tenant, username }));
  }

  async #sessionsOf(tenant: string, username: string, session?: string): Promise<readonly SessionView[]> {
    const found = await this.#sessionStore.of(tenant, username);
    const own = session === undefined ? undefined : digestOf(session);
    return found.map(({ digest: id, createdMs, remote }) => ({ id, createdMs, remote, current: id === own }));
  }

  /** A change of the caller's own data needs no permission, but gets an audit entry like any other. */
  #recorded<T>(principal: Principal, action: string, change: () => Promise<T>): Promise<T> {
    return this.#onRecord(principal, { action, permission: "signin", object: principal.user }, change);
  }

  async #onRecord<T>(
    principal: Principal,
    named: { readonly action: string; readonly permission: string; readonly object: string },
    change: () => Promise<T>,
  ): Promise<T> {
    const { tenant, user, remote = "", traceparent } = principal;
    const entry = { tenant, user, ...named, remote, traceparent };
    await this.#audit.ready(tenant);
    try {
      const answer = await change();
      await this.#audit.record({ ...entry, outcome: "ok", code: "ok" });
      return answer;
    } catch (error) {
      const code = isAppError(error) ? error.code : "internal";
      await this.#audit.record({ ...entry, outcome: "failed", code });
      throw error;
    }
  }

  /** For the sign-in gate: `login` is `<company>.<username>`. `AppError("action_required")` as in `byToken`. */
  async byPassword(credentials: BasicCredentials, traceparent: string): Promise<Principal | undefined> {
    const { login, password } = credentials;
    const token = await this.#byTokenOf(login, password, traceparent);
    if (token !== undefined) return token;
    const verified = await this.#credentials.ofBasic(credentials, traceparent);
    return verified && this.#principals.programOf(verified.user, verified.tenant, traceparent);
  }

  /**
   * Creates the tenant's administrator if no user has that name. Otherwise changes nothing. If no password is given,
   * generates one and answers it.
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
      const isGenerated = wanted.password === undefined;
      await this.create(principal, { username, password, isGenerated, rights: { role: "administrator" } });
    } catch (error) {
      // Another controller of the same cluster was first.
      if (isAppError(error, "conflict")) return { username, created: false };
      throw error;
    }
    return { username, created: true, ...(wanted.password === undefined && { generatedPassword: password }) };
  }

  /**
   * Replaces a lost password by a generated one and answers it. For an operator with access to the store, not for the
   * network. Every session of the user ends; a second factor stays. If no administrator can sign in and this user is
   * one, the organisations above this user are made active. Refused while no audit entry can be written.
   */
  async resetPassword(tenant: string, username: string): Promise<string> {
    const principal = await this.#system(tenant);
    await this.#audit.ready(tenant);
    const password = this.#newPassword();
    await this.directory.setPassword(principal, username, password, true);
    const opened = await this.directory.reopen(principal, username);
    for (const name of opened) await this.#recordOperator(tenant, username, `make the organisation ${name} active`);
    await this.#recordOperator(tenant, username, `reset the password of ${username}`);
    return password;
  }

  /** Like `resetPassword`, for a lost second factor and its recovery codes. Password and open sessions stay. */
  async resetSecondFactor(tenant: string, username: string): Promise<void> {
    await this.#system(tenant);
    await this.#audit.ready(tenant);
    const user = await this.#ownRecord({ tenant, user: username });
    if (!user.secondFactor) throw new AppError("not_found", `The user ${username} has no second factor.`);
    await this.#factors.remove(user);
    await this.#recordOperator(tenant, username, `remove the second factor of ${username}`);
  }

  async #recordOperator(tenant: string, username: string, action: string): Promise<void> {
    const of = { tenant, user: "", permission: "users:write", object: username, remote: "", traceparent: "" };
    await this.#audit.write({ ...of, action, outcome: "ok", code: "ok" });
  }

  async create(principal: Principal, user: NewUser): Promise<User> {
    requirePermission(principal, "users:write");
    return this.directory.create(principal, user);
  }

  async update(principal: Principal, username: string, change: UserChange): Promise<User> {
    requirePermission(principal, "users:write");
    return this.directory.update(principal, username, change);
  }

  async setPassword(principal: Principal, username: string, password: string): Promise<void> {
    requirePermission(principal, "users:write");
    return this.directory.setPassword(principal, username, password);
  }

  async find(principal: Principal, username: string): Promise<User | undefined> {
    requirePermission(principal, "users:read");
    return this.directory.reader.find(principal, username);
  }

  /** Sets the start page for users of the caller's tenant who have no own one. An empty path means `/`. */
  async setTenantHome(principal: Principal, home: string): Promise<void> {
    requirePermission(principal, "users:write");
    return this.#startPages.set(principal.tenant, home);
  }

  /** Accepts a token in place of the password, if the token belongs to the user of `login`. Otherwise `undefined`. */
  async #byTokenOf(login: string, token: string, traceparent: string): Promise<Principal | undefined> {
    const principal = await this.byToken(token, traceparent);
    if (principal === undefined) return undefined;
    const { tenant, username } = await this.#credentials.split(login);
    return tenant?.name === principal.tenant && username === principal.user ? principal : undefined;
  }

  /** `AppError("not_found")` for an unknown tenant. */
  async #system(tenant: string): Promise<Principal> {
    return systemPrincipal(tenant, await this.#tenants.ospaceOf(tenant), "");
  }

  async #owes(user: UserRecord): Promise<Principal["owes"]> {
    const powers = await this.#powers.of(user);
    return powers && this.#requirements.of(user, powers);
  }

  #newPassword(): string {
    return Buffer.from(this.#runtime.random.bytes(15)).toString("base64url");
  }
}
