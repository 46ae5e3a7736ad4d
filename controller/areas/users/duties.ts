import { AppError } from "../../../common/errors.ts";
import { FIRST_PASSWORD_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { Stores } from "../../store/engine.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import { putOnce } from "../../store/once.ts";
import { allows, type Principal } from "../permissions/index.ts";
import { RecentReads } from "./recent.ts";
import { repeated, type UserRecord } from "./store.ts";

/** What a tenant asks of its users besides a password. */
export interface SignInPolicy {
  /** Whom a second factor is required of. Administrators are those who may change groups, by whatever right. */
  readonly secondFactor: "optional" | "administrators" | "everybody";
  /** `once`: a password that somebody else set signs in to its change only, and for `FIRST_PASSWORD_MS`. */
  readonly firstPasswords: "lasting" | "once";
}

/** Members that are absent stay as they are. */
export type PolicyChange = { readonly [member in keyof SignInPolicy]?: SignInPolicy[member] | undefined };

interface StoredPolicy {
  readonly policy: SignInPolicy;
  readonly revision: number;
}

/** Of a tenant's policy in its KvStore. */
export const SIGN_IN_POLICY = "signinpolicy";
const NO_POLICY: StoredPolicy = { policy: { secondFactor: "optional", firstPasswords: "lasting" }, revision: 0 };

/** What users have to do before anything else, by the policy of their tenant. */
export class Duties {
  readonly #stores: Stores;
  readonly #clock: Clock;
  readonly #mayEnrol: boolean;
  readonly #recent: RecentReads<StoredPolicy>;

  /** `mayEnrol`: there is a key to seal second factors with; without it none is required. */
  constructor(stores: Stores, clock: Clock, mayEnrol: boolean) {
    this.#stores = stores;
    this.#clock = clock;
    this.#mayEnrol = mayEnrol;
    this.#recent = new RecentReads(clock);
  }

  async policy(tenant: string): Promise<SignInPolicy> {
    return (await this.#read(tenant)).policy;
  }

  /** As it is, and as `change` would leave it. */
  async previewed(
    tenant: string,
    change: PolicyChange,
  ): Promise<{ readonly before: SignInPolicy; readonly after: SignInPolicy }> {
    const { policy } = await this.#read(tenant);
    return { before: policy, after: this.#changed(policy, change) };
  }

  /** Members that are absent stay. */
  async setPolicy(tenant: string, change: PolicyChange): Promise<SignInPolicy> {
    const { policy, revision } = await this.#read(tenant);
    const next = this.#changed(policy, change);
    const { kv } = await this.#stores.tenant(tenant);
    const put = { key: SIGN_IN_POLICY, value: encodeJson(next), ifRevision: revision };
    if (!(await this.#recent.written(tenant, () => putOnce(kv, put, repeated))).ok)
      throw new AppError("conflict", "The policy was changed by somebody else meanwhile.");
    return next;
  }

  /** Until when a password that is set now by another than its user signs in; undefined: for good. */
  async firstPasswordUntilMs(tenant: string): Promise<number | undefined> {
    const { firstPasswords } = await this.policy(tenant);
    return firstPasswords === "once" ? this.#clock.nowMs() + FIRST_PASSWORD_MS : undefined;
  }

  /** Asked for every call: the policy is as it was at most `SIGN_IN_CACHE_MS` ago. */
  async of(user: UserRecord, powers: Pick<Principal, "grants">): Promise<Principal["owes"]> {
    if (user.firstPasswordUntilMs !== undefined) return "password";
    if (user.secondFactor || !this.#mayEnrol) return undefined;
    const { policy } = (await this.#recent.read(user.tenant, () => this.#read(user.tenant))) ?? NO_POLICY;
    return this.under(policy, user, powers);
  }

  /** What the user would have to do under that policy. */
  under(policy: SignInPolicy, user: UserRecord, powers: Pick<Principal, "grants">): Principal["owes"] {
    if (user.firstPasswordUntilMs !== undefined) return "password";
    if (user.secondFactor || !this.#mayEnrol) return undefined;
    const isRequired =
      policy.secondFactor === "everybody" ||
      (policy.secondFactor === "administrators" && allows(powers, "perms:write"));
    return isRequired ? "second factor" : undefined;
  }

  /** What another controller changed is read again. */
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

/** Throws `AppError("denied")` for a first password that is over. Told to who has it only. */
export function requireFresh({ firstPasswordUntilMs = Infinity }: UserRecord, nowMs: number): void {
  if (nowMs < firstPasswordUntilMs) return;
  const day = new Date(firstPasswordUntilMs).toISOString().slice(0, 10);
  throw new AppError("denied", `This first password ended on ${day}: ask an administrator for a new one.`);
}
