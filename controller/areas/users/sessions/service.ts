import { AppError } from "../../../../common/errors.ts";
import { requireNoDuty, requirePermission, type Principal } from "../../permissions/index.ts";
import type { Credentials } from "../credentials/credentials.ts";
import type { UserDirectory } from "../directory/directory.ts";
import { required } from "../directory/reader.ts";
import type { RecordedChanges } from "../recorded-changes.ts";
import { requireOwnSignIn, requireScopes, type EffectiveRights } from "../rights/effective-rights.ts";
import { digestOf, type SessionStore, type UserStore } from "../store.ts";
import type { NewToken, SessionView, TokenView } from "../types.ts";
import type { Tokens } from "./tokens.ts";

interface SignInsDependencies {
  readonly users: UserStore;
  readonly sessions: SessionStore;
  readonly tokens: Tokens;
  readonly credentials: Pick<Credentials, "again">;
  readonly directory: Pick<UserDirectory, "usernameOf">;
  readonly powers: EffectiveRights;
  readonly recorded: RecordedChanges;
}

/** Sessions and tokens for calls: the caller's own, and those of other users. */
export class SignInsService {
  readonly #with: SignInsDependencies;

  constructor(dependencies: SignInsDependencies) {
    this.#with = dependencies;
  }

  /**
   * Creates a token for the caller and answers it; the token is shown once. Needs no permission. At each use the token
   * has only those of its scopes that its owner still has. It ends when the owner changes the own password.
   */
  async makeToken(principal: Principal, wanted: NewToken): Promise<string> {
    requireOwnSignIn(principal);
    requireNoDuty(principal);
    requireScopes(principal, wanted.scopes);
    const { users, tokens, recorded } = this.#with;
    const { tenant, user, ospace } = principal;
    const { record } = await required(users, tenant, user);
    return recorded.ofOwn(principal, `make the token ${wanted.name}`, () => tokens.make(record, { ...wanted, ospace }));
  }

  /** The caller's own tokens. */
  tokens({ tenant, user: username }: Principal): Promise<readonly TokenView[]> {
    return this.#with.tokens.list({ tenant, username });
  }

  /** Removes one of the caller's own tokens; `AppError("not_found")` if it does not exist. */
  async removeToken(principal: Principal, id: string): Promise<void> {
    requireOwnSignIn(principal);
    const { tenant, user: username } = principal;
    const remove = (): Promise<boolean> => this.#with.tokens.remove({ tenant, username }, id);
    if (!(await this.#with.recorded.ofOwn(principal, "remove a token", remove)))
      throw new AppError("not_found", "There is no such token.");
  }

  /** The caller's own sessions, at most one page. `session` is the session of this call, which is marked as current. */
  sessions({ tenant, user }: Principal, session?: string): Promise<readonly SessionView[]> {
    return this.#sessionsOf(tenant, user, session);
  }

  /** Ends one of the caller's own sessions. Needs the password. `AppError("not_found")` if it does not exist. */
  async endSession(principal: Principal, id: string, password: string): Promise<void> {
    requireOwnSignIn(principal);
    const { recorded, credentials, sessions } = this.#with;
    await recorded.ofOwn(principal, "end a session", async () => {
      const user = await credentials.again(principal, password);
      if (!(await sessions.removeOf(user, id))) throw new AppError("not_found", "There is no such session.");
    });
  }

  /** Ends all of the caller's own sessions except `session`. Needs the password. */
  async endOtherSessions(principal: Principal, session: string | undefined, password: string): Promise<void> {
    requireOwnSignIn(principal);
    const { recorded, credentials, sessions } = this.#with;
    await recorded.ofOwn(principal, "end all other sessions", async () => {
      const user = await credentials.again(principal, password);
      await sessions.removeAllOf(user, session);
    });
  }

  /** The sessions of another user. */
  async sessionsOf(principal: Principal, id: string): Promise<readonly SessionView[]> {
    requirePermission(principal, "users:read");
    return this.#sessionsOf(principal.tenant, await this.#with.directory.usernameOf(principal, id));
  }

  /** Ends all sessions and tokens of a user, and answers their number. The password does not change. */
  async endAll(principal: Principal, id: string): Promise<number> {
    requirePermission(principal, "users:write");
    const { directory, users, powers, sessions, tokens } = this.#with;
    const { tenant } = principal;
    const username = await directory.usernameOf(principal, id);
    const stored = await users.get(tenant, username);
    if (stored !== undefined) await powers.requireAtLeast(principal, stored.record);
    const open = await sessions.of(tenant, username);
    for (const { digest } of open) await sessions.removeOf({ tenant, username }, digest);
    return open.length + (await tokens.removeAllOf({ tenant, username }));
  }

  async #sessionsOf(tenant: string, username: string, session?: string): Promise<readonly SessionView[]> {
    const found = await this.#with.sessions.of(tenant, username);
    const own = session === undefined ? undefined : digestOf(session);
    return found.map(({ digest: id, createdMs, remote }) => ({ id, createdMs, remote, current: id === own }));
  }
}
