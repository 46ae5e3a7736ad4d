import { zoneNamed } from "../../../../common/calendar/zones.ts";
import type { Clock } from "../../../../common/time.ts";
import type { EvidenceList } from "../../../store/evidence.ts";
import { owing, requireNoDutyOfProgram, type Principal } from "../../permissions/index.ts";
import type { Tenants } from "../../tenants/index.ts";
import type { Activity } from "../directory/activity.ts";
import { TIME_ZONE } from "../directory/details.ts";
import { confined, type EffectiveRights } from "../rights/effective-rights.ts";
import type { PendingRequirements } from "../second-factor/pending-requirements.ts";
import type { UserRecord, UserStore } from "../store.ts";
import type { CurrentUsers } from "./current.ts";
import { KnownSessions } from "./known.ts";
import type { Sessions } from "./sessions.ts";
import type { Tokens } from "./tokens.ts";

interface PrincipalDependencies {
  readonly clock: Clock;
  readonly users: UserStore;
  readonly tenants: Tenants;
  readonly activity: Activity;
  readonly powers: EffectiveRights;
  readonly requirements: PendingRequirements;
  readonly sessions: Sessions;
  readonly tokens: Tokens;
  readonly current: CurrentUsers;
  /** Watches the users of a tenant from now on. */
  readonly follow: (tenant: string) => void;
}

/** Users with their present rights, by session, by token or by name. */
export class Principals {
  readonly #with: PrincipalDependencies;
  readonly #known = new KnownSessions();

  constructor(dependencies: PrincipalDependencies) {
    this.#with = dependencies;
  }

  async bySession(session: string, traceparent: string): Promise<Principal | undefined> {
    const evidence: EvidenceList = [];
    const record = await this.#with.sessions.use(session, evidence);
    if (record === undefined) return undefined;
    const user = await this.#with.current.find(record.tenant, record.username, { epoch: record.epoch, evidence });
    const given = user && (await this.#of(user, record.ospace, { traceparent, evidence }));
    const duty = user && given && (await this.#with.requirements.of(user, given, evidence));
    const principal = given && duty ? owing(given, duty) : given;
    const nowMs = this.#with.clock.monotonicMs();
    if (principal !== undefined) this.#known.keep(session, { principal, record, evidence }, nowMs);
    return principal;
  }

  /** As `bySession`, if nothing must be read for it. */
  byKnownSession(session: string, call: Pick<Principal, "traceparent" | "remote">): Principal | undefined {
    const known = this.#known.find(session, this.#with.clock.monotonicMs());
    return known && this.#with.sessions.isSettled(known.record) ? { ...known.principal, ...call } : undefined;
  }

  /** The user with current rights, for running stored work of that user. `undefined`: unknown or inactive. */
  async present(tenant: string, username: string): Promise<Principal | undefined> {
    const record = (await this.#with.users.recent(tenant, username))?.record;
    if (record === undefined || !(await this.#with.activity.isActive(record))) return undefined;
    const found = await this.#with.tenants.get(tenant);
    return found && this.#of(record, found.ospace, { traceparent: "" });
  }

  /**
   * For the sign-in gate: the user who created the token, limited to the scopes of the token.
   * `AppError("action_required")` if the user must first fulfil a sign-in requirement (`PendingRequirements`).
   */
  async byToken(token: string, traceparent: string): Promise<Principal | undefined> {
    const record = await this.#with.tokens.use(token);
    if (record === undefined) return undefined;
    this.#with.follow(record.tenant);
    const user = (await this.#with.users.recent(record.tenant, record.username))?.record;
    if (user === undefined || user.id !== record.userId || !(await this.#with.activity.isActive(user)))
      return undefined;
    return this.programOf(user, record, traceparent);
  }

  /** The rights of a program that signed in as the user. `AppError("action_required")` as in `byToken`. */
  async programOf(
    user: UserRecord,
    { ospace, scopes, name }: { readonly ospace: string; readonly scopes?: readonly string[]; readonly name?: string },
    traceparent: string,
  ): Promise<Principal | undefined> {
    const principal = await this.#of(user, ospace, { traceparent });
    if (principal === undefined) return undefined;
    requireNoDutyOfProgram({ user: principal.user, owes: await this.#with.requirements.of(user, principal) });
    return scopes === undefined ? principal : confined(principal, { scopes, name });
  }

  async #of(
    user: UserRecord,
    ospace: string,
    { traceparent, evidence }: { readonly traceparent: string; readonly evidence?: EvidenceList },
  ): Promise<Principal | undefined> {
    const { tenant, username } = user;
    const given = await this.#with.powers.of(user, evidence);
    const { [TIME_ZONE]: timeZone } = user.details.config;
    const zone = timeZone !== undefined && zoneNamed(timeZone) ? { timeZone } : {};
    return given && { tenant, ospace, user: username, ...given, ...zone, traceparent };
  }
}
