import { SESSION_SWEEP_MS } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Member } from "../groups/index.ts";
import { requireMayChange, requirePermission, type Principal } from "../permissions/index.ts";
import type { ChangedUser } from "./changes.ts";
import type { BasicCredentials } from "./credentials/credentials.ts";
import type { PasswordPolicy } from "./credentials/password-policy.ts";
import type { UserDirectory } from "./directory/directory.ts";
import type { OperatorAccess } from "./operator.ts";
import { userParts, type UserDependencies, type UserParts } from "./parts.ts";
import type { ProviderSignIns } from "./providers/provider-signins.ts";
import { requireOwnSignIn } from "./rights/effective-rights.ts";
import type { SignInPolicyService } from "./second-factor/policy-service.ts";
import type { FactorService } from "./second-factor/service.ts";
import type { SignInsService } from "./sessions/service.ts";
import type { CodeRequest, NewUser, SignedIn, SignInRequest, User, UserChange, Users } from "./types.ts";

/**
 * Users for calls: signs them in, answers their principals, and changes them. Other services of the area are its
 * members.
 */
export class UserService implements Users {
  readonly directory: UserDirectory;
  /** Why a password is refused. */
  readonly passwordFault: PasswordPolicy;
  /** Users of an OpenID provider. */
  readonly providers: ProviderSignIns;
  /** Sessions and tokens. */
  readonly signIns: SignInsService;
  readonly secondFactors: FactorService;
  readonly signInPolicy: SignInPolicyService;
  readonly operator: OperatorAccess;
  readonly #runtime: Runtime;
  readonly #parts: UserParts;
  readonly #listeners: ((change: ChangedUser) => void)[] = [];
  #cancelSweep: () => void = () => {};

  constructor(dependencies: UserDependencies) {
    this.#runtime = dependencies.runtime;
    this.#parts = userParts(dependencies, {
      watched: (change) => this.#changed(change),
      missed: () => this.#forget(undefined),
      policyChanged: (change) => this.#tell(change),
    });
    this.directory = this.#parts.directory;
    this.passwordFault = this.#parts.passwordFault;
    this.providers = this.#parts.providers;
    this.signIns = this.#parts.signIns;
    this.secondFactors = this.#parts.secondFactors;
    this.signInPolicy = this.#parts.signInPolicy;
    this.operator = this.#parts.operator;
    dependencies.groups?.onChange(({ tenant, isRefresh }) => {
      if (isRefresh) this.#drop(tenant);
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
      const user = (await this.#parts.users.get(principal.tenant, username))?.record;
      return user !== undefined && isNarrower(this.#parts.powers.memberOf(user));
    };
    const includes = (username: string): Promise<boolean> => {
      const answer = known.get(username) ?? asked(username);
      known.set(username, answer);
      return answer;
    };
    return this.#parts.left.told(principal, { name, what: "group", includes });
  }

  /** Starts to watch for changes by other controllers, and to remove expired sessions, until `stop`. */
  start(): void {
    this.#parts.changes.start();
    this.#sweepLater();
  }

  async stop(): Promise<void> {
    this.#cancelSweep();
    await this.#parts.changes.stop();
  }

  /** Like `SignIn.onChange`; reports nothing before `start`. */
  onChange(listener: (change: ChangedUser) => void): void {
    this.#listeners.push(listener);
  }

  #changed({ tenant, user, digest }: ChangedUser): void {
    if (digest === undefined) this.#parts.users.forget(tenant, user);
    else this.#forget(digest);
    if (user === undefined) {
      this.#parts.requirements.forget(tenant);
      this.#parts.tree.forget(tenant);
    }
    this.#tell(user === undefined ? { tenant } : { tenant, user });
  }

  #tell(change: ChangedUser): void {
    for (const listener of this.#listeners) listener(change);
  }

  /** Drops the cached sign-in data of the tenant, and all cached sessions and tokens. */
  #drop(tenant: string): void {
    this.#parts.users.forget(tenant, undefined);
    this.#parts.tree.forget(tenant);
    this.#parts.requirements.forget(tenant);
    this.#parts.credentials.forget(tenant);
    this.#forget(undefined);
  }

  #forget(digest: string | undefined): void {
    this.#parts.sessionStore.forget(digest);
    this.#parts.tokens.forget(digest);
  }

  #sweepLater(): void {
    this.#cancelSweep = this.#runtime.clock.after(SESSION_SWEEP_MS, () => {
      this.#parts.sessions
        .sweep()
        .catch((error: unknown) => this.#runtime.log.warn({ err: error }, "sessions could not be swept"));
      this.#sweepLater();
    });
  }

  async signIn(request: SignInRequest): Promise<SignedIn> {
    return this.#parts.opening.open(await this.#parts.credentials.ofSignIn(request), request);
  }

  /**
   * The second step of `signIn`, with the ticket from the error `CodeNeeded` of the first step. `AppError("deadline")`
   * if the ticket is too old or the user has changed since.
   */
  async signInByCode(request: CodeRequest): Promise<SignedIn> {
    const { ticket, ...verified } = await this.#parts.credentials.ofCode(request);
    return this.#parts.opening.open(verified, { ...ticket, remote: request.remote, replaced: request.replaced });
  }

  /**
   * Changes the caller's own password from `password` to `next`. Every session and token of the caller ends.
   * `AppError("invalid")` if `next` is too easy to guess.
   */
  async changeOwnPassword(principal: Principal, password: string, next: string): Promise<void> {
    requireOwnSignIn(principal);
    await this.#parts.recorded.ofOwn(principal, "change the own password", async () =>
      this.directory.setOwnPassword(principal, await this.#parts.credentials.again(principal, password), next),
    );
  }

  async signOut(principal: Principal, session: string): Promise<void> {
    requireMayChange(principal);
    return this.#parts.sessions.close(session);
  }

  bySession(session: string, traceparent: string): Promise<Principal | undefined> {
    return this.#parts.principals.bySession(session, traceparent);
  }

  /** As `bySession`, if nothing must be read for it. */
  byKnownSession(session: string, call: Pick<Principal, "traceparent" | "remote">): Principal | undefined {
    return this.#parts.principals.byKnownSession(session, call);
  }

  /** The user with current rights, for running stored work of that user. `undefined`: unknown or inactive. */
  present(tenant: string, username: string): Promise<Principal | undefined> {
    return this.#parts.principals.present(tenant, username);
  }

  /** For the sign-in gate: see `Principals.byToken`. */
  byToken(token: string, traceparent: string): Promise<Principal | undefined> {
    return this.#parts.principals.byToken(token, traceparent);
  }

  /** For the sign-in gate: `login` is `<company>.<username>`. `AppError("action_required")` as in `byToken`. */
  async byPassword(credentials: BasicCredentials, traceparent: string): Promise<Principal | undefined> {
    const { login, password } = credentials;
    const token = await this.#byTokenOf(login, password, traceparent);
    if (token !== undefined) return token;
    const verified = await this.#parts.credentials.ofBasic(credentials, traceparent);
    return verified && this.#parts.principals.programOf(verified.user, verified.tenant, traceparent);
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
    return this.#parts.startPages.set(principal.tenant, home);
  }

  /** Accepts a token in place of the password, if the token belongs to the user of `login`. Otherwise `undefined`. */
  async #byTokenOf(login: string, token: string, traceparent: string): Promise<Principal | undefined> {
    const principal = await this.byToken(token, traceparent);
    if (principal === undefined) return undefined;
    const { tenant, username } = await this.#parts.credentials.split(login);
    return tenant?.name === principal.tenant && username === principal.user ? principal : undefined;
  }
}
