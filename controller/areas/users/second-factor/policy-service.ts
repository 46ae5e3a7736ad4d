import { requireNoPartToken, requirePermission, type Principal } from "../../permissions/index.ts";
import type { PendingRequirements, PolicyChange, SignInPolicy } from "./pending-requirements.ts";
import type { PolicyStops, StopsByPolicy } from "./policy-stops.ts";

/** A policy after a change, with the programs that it stops. */
export interface ChangedPolicy extends SignInPolicy {
  readonly stops: PolicyStops;
}

interface PolicyDependencies {
  readonly requirements: PendingRequirements;
  readonly stops: StopsByPolicy;
  /** Called when sign-in data of a tenant have changed. */
  readonly changed: (change: { readonly tenant: string }) => void;
}

/** The sign-in policy of the caller's tenant. */
export class SignInPolicyService {
  readonly #with: PolicyDependencies;

  constructor(dependencies: PolicyDependencies) {
    this.#with = dependencies;
  }

  async get(principal: Principal): Promise<SignInPolicy> {
    requirePermission(principal, "users:read");
    return this.#with.requirements.policy(principal.tenant);
  }

  /** Answers the policy after the change, and the programs that the change would stop. Changes nothing. */
  async preview(principal: Principal, change: PolicyChange): Promise<ChangedPolicy> {
    requirePermission(principal, "perms:read");
    return this.#changed(principal, change);
  }

  /**
   * Sets the policy; needs `perms:write`. The policy also applies to calls by open sessions, tokens and Basic sign-in.
   * Absent members stay unchanged. Answers the programs that the change stops.
   */
  async set(principal: Principal, change: PolicyChange): Promise<ChangedPolicy> {
    requirePermission(principal, "perms:write");
    requireNoPartToken(principal);
    const { requirements, changed } = this.#with;
    const { stops } = await this.#changed(principal, change);
    const policy = await requirements.setPolicy(principal.tenant, change);
    changed({ tenant: principal.tenant });
    return { ...policy, stops };
  }

  async #changed(principal: Principal, change: PolicyChange): Promise<ChangedPolicy> {
    const { before, after } = await this.#with.requirements.previewed(principal.tenant, change);
    return { ...after, stops: await this.#with.stops.between(principal, { before, after }) };
  }
}
