import { createHmac } from "node:crypto";
import { AppError } from "../../../../common/errors.ts";
import { BASIC_CACHE_MAX_ENTRIES, BASIC_CACHE_MS, USERNAME_MAX_CHARACTERS } from "../../../../common/limits.ts";
import { beginningOf } from "../../../../common/text/cut.ts";
import { networkOf } from "../../../settings/network.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import type { Audit } from "../../audit/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { Tenant, Tenants } from "../../tenants/index.ts";
import type { Activity } from "../directory/activity.ts";
import { isName } from "../directory/places.ts";
import { requireFresh } from "../second-factor/pending-requirements.ts";
import type { Passwords } from "./passwords.ts";
import type { SecondFactors } from "../second-factor/second-factor.ts";
import { type Guess, SignInSlowdown } from "./slowdown.ts";
import type { SessionStore, UserRecord, UserStore } from "../store.ts";
import { CodeNeeded, tooLate, type Ticket, type Tickets } from "../second-factor/tickets.ts";
import type { CodeRequest, SignInRequest } from "../types.ts";

export interface CredentialsDependencies {
  readonly runtime: Runtime;
  readonly stores: Stores;
  readonly sessions: Pick<SessionStore, "of">;
  readonly tenants: Tenants;
  readonly audit: Audit;
  readonly users: UserStore;
  readonly passwords: Passwords;
  readonly factors: SecondFactors;
  /** Absent: a code is accepted only together with the password. */
  readonly tickets: Tickets | undefined;
  readonly activity: Activity;
  /** The user if active and unchanged since `epoch`. */
  readonly current: (tenant: string, username: string, epoch: string) => Promise<UserRecord | undefined>;
}

/** `login` is `<company>.<username>`. */
export interface BasicCredentials {
  readonly login: string;
  readonly password: string;
  readonly remote: string;
}

type FactorRequest = Pick<SignInRequest, "code" | "remember" | "redirect" | "remote" | "traceparent">;

interface Attempt {
  readonly tenant: Tenant | undefined;
  readonly username: string;
  readonly password: string;
  readonly remote: string;
  readonly traceparent: string;
  readonly action: string;
}

interface Named {
  readonly tenant: Tenant | undefined;
  readonly username: string;
}

/** A user whose identity is verified. */
export interface Verified {
  readonly tenant: Tenant;
  readonly user: UserRecord;
}

interface CachedLogin {
  readonly tenant: Tenant;
  readonly username: string;
  readonly epoch: string;
  readonly untilMs: number;
}

const WRONG = "Company, user name or password are wrong.";

/**
 * Verifies users by password and code. Guessing is slowed down, and every checked attempt gets an audit entry. Opens no
 * session.
 */
export class Credentials {
  readonly #runtime: Runtime;
  readonly #tenants: Tenants;
  readonly #audit: Audit;
  readonly #users: UserStore;
  readonly #passwords: Passwords;
  readonly #factors: SecondFactors;
  readonly #tickets: Tickets | undefined;
  readonly #activity: Activity;
  readonly #current: CredentialsDependencies["current"];
  readonly #sessions: CredentialsDependencies["sessions"];
  readonly #slowdown: SignInSlowdown;
  /** Verified Basic credentials, by a digest that only this process can compute. */
  readonly #logins = new Map<string, CachedLogin>();
  readonly #checks = new Map<string, Promise<Verified | undefined>>();
  readonly #digestKey: Uint8Array;

  constructor(dependencies: CredentialsDependencies) {
    const { runtime, stores, tenants, audit, users, passwords, factors, tickets, current } = dependencies;
    this.#runtime = runtime;
    this.#tenants = tenants;
    this.#audit = audit;
    this.#users = users;
    this.#passwords = passwords;
    this.#factors = factors;
    this.#tickets = tickets;
    this.#activity = dependencies.activity;
    this.#current = current;
    this.#sessions = dependencies.sessions;
    this.#slowdown = new SignInSlowdown(stores, runtime);
    this.#digestKey = runtime.random.bytes(32);
  }

  /** Throws the errors of `Users.signIn`. */
  async ofSignIn(request: SignInRequest): Promise<Verified> {
    const { password, remote, traceparent } = request;
    const { tenant, username } = await this.#named(request);
    const verified = await this.#check({ tenant, username, password, remote, traceparent, action: "sign in" });
    if (verified === undefined) throw new AppError("denied", WRONG);
    requireFresh(verified.user, this.#runtime.clock.nowMs());
    await this.requireSecondFactor(verified, request);
    return verified;
  }

  /**
   * Verifies the code for the ticket of `CodeNeeded`. `AppError("deadline")` if the ticket is too old or the user has
   * changed since.
   */
  async ofCode(request: CodeRequest): Promise<Verified & { readonly ticket: Ticket }> {
    const { ticket: text, code, remote, traceparent } = request;
    const ticket = this.#tickets?.open(text);
    const tenant = ticket && (await this.#tenants.get(ticket.tenant));
    const user = ticket && (await this.#users.get(ticket.tenant, ticket.username))?.record;
    if (!ticket || !tenant || user?.epoch !== ticket.epoch || !user.secondFactor) throw tooLate();
    if (!(await this.#activity.isActive(user))) throw tooLate();
    await this.#requireCode({ tenant, user }, ticket, { code, remote, traceparent });
    return { tenant, user, ticket };
  }

  /** Requires the code of a verified user with a second factor. Throws `CodeNeeded` if it is missing or wrong. */
  async requireSecondFactor(verified: Verified, request: FactorRequest): Promise<void> {
    const { tenant, username, epoch, secondFactor } = verified.user;
    const { remember = false, redirect = "", remote, traceparent, code } = request;
    if (secondFactor)
      await this.#requireCode(verified, { tenant, username, epoch, remember, redirect }, { code, remote, traceparent });
  }

  /** Verifies Basic credentials. Undefined if they are wrong; `AppError("denied")` for a user with a second factor. */
  async ofBasic({ login, password, remote }: BasicCredentials, traceparent: string): Promise<Verified | undefined> {
    const digest = this.#digest(login, password);
    const known = await this.#cachedLogin(digest);
    const verified = known ?? (await this.#basic({ login, password, remote }, traceparent));
    if (verified === undefined) return undefined;
    if (known === undefined) await this.#keepLogin(digest, verified);
    requireOneFactor(verified.user);
    requireFresh(verified.user, this.#runtime.clock.nowMs());
    return verified;
  }

  /** Drops the cached logins of the tenant. The next calls check passwords again. */
  forget(tenant: string): void {
    for (const [digest, login] of this.#logins) if (login.tenant.name === tenant) this.#logins.delete(digest);
  }

  async #basic({ login, password, remote }: BasicCredentials, traceparent: string): Promise<Verified | undefined> {
    const { tenant, username } = await this.split(login);
    return this.#check({ tenant, username, password, remote, traceparent, action: "basic sign-in" });
  }

  /** Verifies the caller's own password again. Guessing is slowed down like in a sign-in. */
  async again(principal: Principal, password: string): Promise<UserRecord> {
    const { tenant: name, user: username, remote = "", traceparent } = principal;
    const tenant = await this.#tenants.get(name);
    const action = "give the password again";
    const verified = await this.#check({ tenant, username, password, remote, traceparent, action });
    if (verified === undefined) throw new AppError("denied", "The password is wrong.");
    requireFresh(verified.user, this.#runtime.clock.nowMs());
    return verified.user;
  }

  /** `<company>.<username>`. Only user names may contain dots. A single company may be omitted. */
  async split(login: string): Promise<Named> {
    const dot = login.indexOf(".");
    const named = dot > 0 ? await this.#tenants.get(login.slice(0, dot)) : undefined;
    if (named !== undefined) return { tenant: named, username: login.slice(dot + 1) };
    return { tenant: await this.#tenants.only(), username: login };
  }

  /** Each attempt is checked by itself. Of equal attempts at the same time, only one may use the code. */
  async #requireCode(
    { tenant, user }: Verified,
    ticket: Ticket,
    given: { readonly code: string | undefined; readonly remote: string; readonly traceparent: string },
  ): Promise<void> {
    const { code = "", remote, traceparent } = given;
    const needed = (isWrong: boolean) => new CodeNeeded(isWrong, this.#tickets?.make(ticket) ?? "");
    if (code === "") throw needed(false);
    const isRight = await this.#slowdown.during(this.#guess(tenant, user.username, remote), async () => {
      const value = await this.#factors.accepts(user, code);
      return { outcome: value ? "right" : "wrong", value };
    });
    const attempt = { tenant, username: user.username, password: "", remote, traceparent, action: "sign in: code" };
    await this.#recordAttempt(attempt, isRight);
    if (!isRight) throw needed(true);
  }

  /**
   * Equal attempts at the same time share one check. So a page that loads with many Basic calls costs one check, and
   * its failure counts once.
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
    const verified = await this.#slowdown.during(this.#guess(tenant, username, remote), async () => {
      const value = await this.#matching(attempt);
      // If the user has a second factor, the right password alone does not reset the failures.
      const outcome = value === undefined ? "wrong" : value.user.secondFactor ? "half" : "right";
      return { outcome, value };
    });
    if (verified !== undefined) await this.#renewHash(verified.user, password);
    await this.#recordAttempt(attempt, verified !== undefined);
    return verified;
  }

  async #matching({ tenant, username, password }: Attempt): Promise<Verified | undefined> {
    const user =
      tenant === undefined || !isName(username) ? undefined : (await this.#users.get(tenant.name, username))?.record;
    const matches = await this.#passwords.matches(password, user?.hash);
    const isRight = tenant !== undefined && user !== undefined && matches;
    return isRight && (await this.#activity.isActive(user)) ? { tenant, user } : undefined;
  }

  #guess(tenant: Tenant | undefined, username: string, remote: string): Guess {
    const name = beginningOf(username, USERNAME_MAX_CHARACTERS);
    return {
      user: `${tenant?.name ?? ""}/${name}`,
      remote,
      hasSessionFrom: async (network) => {
        if (tenant === undefined || !isName(name)) return false;
        const sessions = await this.#sessions.of(tenant.name, name);
        return sessions.some((session) => networkOf(session.remote) === network);
      },
    };
  }

  /**
   * Keeps the epoch, so sign-ins verified with the old hash stay valid. If another write is first, the next sign-in
   * tries again.
   */
  async #renewHash(user: UserRecord, password: string): Promise<void> {
    const hash = await this.#passwords.renewed(password, user.hash);
    if (hash === undefined) return;
    try {
      const stored = await this.#users.get(user.tenant, user.username);
      if (stored?.record.hash === user.hash) await this.#users.put({ ...stored.record, hash }, stored.revision);
    } catch (error) {
      this.#runtime.log.warn({ err: error }, "the hash of a password could not be renewed");
    }
  }

  async #recordAttempt(attempt: Attempt, ok: boolean): Promise<void> {
    const { tenant, username, remote, traceparent, action } = attempt;
    const outcome = ok ? ({ outcome: "ok", code: "ok" } as const) : ({ outcome: "denied", code: "denied" } as const);
    const entry = {
      tenant: tenant?.name ?? "",
      user: beginningOf(username, USERNAME_MAX_CHARACTERS),
      permission: "signin",
      action,
      remote,
      traceparent,
      ...outcome,
    };
    // Sign-in works even without this entry, so that users can inspect the fault. The gate refuses changes.
    await this.#audit.record(entry);
  }

  async #named({ company = "", username }: SignInRequest): Promise<Named> {
    if (company !== "") return { tenant: await this.#tenants.get(company), username };
    const named = await this.split(username);
    if (named.tenant === undefined && !username.includes("."))
      throw new AppError("invalid", "company is missing: there are several.", { details: { fields: ["company"] } });
    return named;
  }

  async #cachedLogin(digest: string): Promise<Verified | undefined> {
    const login = this.#logins.get(digest);
    if (login === undefined) return undefined;
    const user =
      login.untilMs > this.#runtime.clock.monotonicMs()
        ? await this.#current(login.tenant.name, login.username, login.epoch)
        : undefined;
    if (user !== undefined) return { tenant: login.tenant, user };
    this.#logins.delete(digest);
    return undefined;
  }

  async #keepLogin(digest: string, { tenant, user }: Verified): Promise<void> {
    const epoch = await this.#activity.epochOf(user);
    if (epoch === undefined) return;
    const [oldest] = this.#logins.keys();
    if (this.#logins.size >= BASIC_CACHE_MAX_ENTRIES && oldest !== undefined) this.#logins.delete(oldest);
    this.#logins.set(digest, {
      tenant,
      username: user.username,
      epoch,
      untilMs: this.#runtime.clock.monotonicMs() + BASIC_CACHE_MS,
    });
  }

  #digest(login: string, password: string): string {
    return createHmac("sha256", this.#digestKey)
      .update(JSON.stringify([login, password]))
      .digest("base64");
  }
}

/** Refuses users with a second factor: a program repeats its credentials, but a code works only once. */
function requireOneFactor(user: UserRecord): void {
  if (user.secondFactor)
    throw new AppError("denied", "This user has a second factor: a program sends a token in place of the password.");
}
