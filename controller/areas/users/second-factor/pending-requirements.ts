import { AppError } from "../../../../common/errors.ts";
import { FIRST_PASSWORD_MS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import type { Stores } from "../../../store/engine.ts";
import type { EvidenceList } from "../../../store/evidence.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import { putOnce } from "../../../store/once.ts";
import { allows, type Principal } from "../../permissions/index.ts";
import { RecentReads } from "../sessions/recent.ts";
import { repeated, type UserRecord } from "../store.ts";

/** Sign-in requirements of a tenant besides a password. */
export interface SignInPolicy {
  /**
   * Users who need a second factor. `administrators` are all users with the permission to change groups
   * (`perms:write`).
   */
  readonly secondFactor: "optional" | "administrators" | "everybody";
  /**
   * `once`: after another user has set a user's password, the user can only change it, and only for
   * `FIRST_PASSWORD_MS`.
   */
  readonly firstPasswords: "lasting" | "once";
}

/** A change of the policy; absent members stay unchanged. */
export type PolicyChange = { readonly [member in keyof SignInPolicy]?: SignInPolicy[member] | undefined };

interface StoredPolicy {
  readonly policy: SignInPolicy;
  readonly revision: number;
}

/** Key of the policy in the tenant's KvStore. */
export const SIGN_IN_POLICY = "signinpolicy";
const NO_POLICY: StoredPolicy = { policy: { secondFactor: "optional", firstPasswords: "lasting" }, revision: 0 };

/** Sign-in requirements of a tenant's policy that users must fulfil before anything else. */
export class PendingRequirements {
  readonly #stores: Stores;
  readonly #clock: Clock;
  readonly #mayEnrol: boolean;
  readonly #recent: RecentReads<StoredPolicy>;

  /** `mayEnrol`: true if there is a key to seal second factors. Without such a key, no second factor is required. */
  constructor(stores: Stores, clock: Clock, mayEnrol: boolean) {
    this.#stores = stores;
    this.#clock = clock;
    this.#mayEnrol = mayEnrol;
    this.#recent = new RecentReads(clock);
  }

  async policy(tenant: string): Promise<SignInPolicy> {
    return (await this.#read(tenant)).policy;
  }

  /** The current policy, and the policy after `change`. */
  async previewed(
    tenant: string,
    change: PolicyChange,
  ): Promise<{ readonly before: SignInPolicy; readonly after: SignInPolicy }> {
    const { policy } = await this.#read(tenant);
    return { before: policy, after: this.#changed(policy, change) };
  }

  /**
   * Stores the policy and answers it; absent members stay unchanged. `AppError("conflict")` if the policy was changed
   * meanwhile.
   */
  async setPolicy(tenant: string, change: PolicyChange): Promise<SignInPolicy> {
    const { policy, revision } = await this.#read(tenant);
    const next = this.#changed(policy, change);
    const { kv } = await this.#stores.tenant(tenant);
    const put = { key: SIGN_IN_POLICY, value: encodeJson(next), ifRevision: revision };
    if (!(await this.#recent.written(tenant, () => putOnce(kv, put, repeated))).ok)
      throw new AppError("conflict", "The policy was changed by somebody else meanwhile.");
    return next;
  }

  /** Expiry of a password that another user sets now; undefined: it does not expire. */
  async firstPasswordUntilMs(tenant: string): Promise<number | undefined> {
    const { firstPasswords } = await this.policy(tenant);
    return firstPasswords === "once" ? this.#clock.nowMs() + FIRST_PASSWORD_MS : undefined;
  }

  /** The requirement that the user must fulfil now, or undefined. The policy is at most `SIGN_IN_CACHE_MS` old. */
  async of(user: UserRecord, powers: Pick<Principal, "grants">, evidence?: EvidenceList): Promise<Principal["owes"]> {
    if (user.firstPasswordUntilMs !== undefined) return "password";
    if (user.secondFactor || !this.#mayEnrol) return undefined;
    const read = this.#recent.read(user.tenant, () => this.#read(user.tenant), evidence);
    const { policy } = (await read) ?? NO_POLICY;
    return this.under(policy, user, powers);
  }

  /** The requirement that the user would have under `policy`, or undefined. */
  under(policy: SignInPolicy, user: UserRecord, powers: Pick<Principal, "grants">): Principal["owes"] {
    if (user.firstPasswordUntilMs !== undefined) return "password";
    if (user.secondFactor || !this.#mayEnrol) return undefined;
    const isRequired =
      policy.secondFactor === "everybody" ||
      (policy.secondFactor === "administrators" && allows(powers, "perms:write"));
    return isRequired ? "second factor" : undefined;
  }

  /** Drops the cached policy, because another controller may have changed it. */
  forget(tenant: string): void {
    this.#recent.forget(tenant);
  }

  #changed(policy: SignInPolicy, change: PolicyChange): SignInPolicy {
    const next = {
      secondFactor: change.secondFactor ?? policy.secondFactor,
      firstPasswords: change.firstPasswords ?? policy.firstPasswords,
    };
    if (next.secondFactor !== "optional" && !this.#mayEnrol)
      throw new AppError("unavailable", "There is no key to seal second factors with.");
    return next;
  }

  async #read(tenant: string): Promise<StoredPolicy> {
    const entry = await (await this.#stores.tenant(tenant)).kv.get(SIGN_IN_POLICY);
    return entry ? { policy: decodeStored<SignInPolicy>(entry.value), revision: entry.revision } : NO_POLICY;
  }
}

/**
 * Throws `AppError("denied")` for an expired first password. Call it only after the password was verified, so that
 * guessers learn nothing.
 */
export function requireFresh({ firstPasswordUntilMs = Infinity }: UserRecord, nowMs: number): void {
  if (nowMs < firstPasswordUntilMs) return;
  const day = new Date(firstPasswordUntilMs).toISOString().slice(0, 10);
  throw new AppError("denied", `This first password ended on ${day}: ask an administrator for a new one.`);
}
