import { mapLimited } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import { POLICIES_PER_HOST_MAX, POLICY_PARALLEL_HOSTS, POLICY_RACES_MAX } from "../../../common/limits.ts";
import type { Hosts } from "../hosts/index.ts";
import { changedMeanwhile, type PolicyStore } from "./store.ts";

interface Dependencies {
  readonly store: PolicyStore;
  readonly hosts: Pick<Hosts, "refresh">;
}

/** Updates the list of policies of each host when the targets of a policy change. Safe on several controllers. */
export class PolicyAssignments {
  readonly #store: PolicyStore;
  readonly #hosts: Dependencies["hosts"];

  constructor({ store, hosts }: Dependencies) {
    this.#store = store;
    this.#hosts = hosts;
  }

  /**
   * Updates the lists of the policy's unsettled hosts, then removes `unsettled` from its targets. If this is
   * interrupted, the next call continues. `AppError("conflict")` if other writers win `POLICY_RACES_MAX` times,
   * `AppError("too_large")` if a host already has `POLICIES_PER_HOST_MAX` policies.
   */
  async settle(tenant: string, name: string): Promise<void> {
    for (let race = 0; race < POLICY_RACES_MAX; race++) {
      const seen = await this.#store.get(tenant, name);
      if (!seen.targets.value?.unsettled) return;
      const { unsettled, ...targets } = seen.targets.value;
      await this.#follow(tenant, name, unsettled);
      if (await this.#store.write(tenant, name, { seen, targets })) return;
    }
    throw changedMeanwhile(name);
  }

  /** Settles all policies whose change was interrupted. Idempotent. */
  async settleAll(tenant: string): Promise<void> {
    for (const [name, { value }] of await this.#store.allTargets(tenant))
      if (value?.unsettled) await this.settle(tenant, name);
  }

  /** Updates the lists of the hosts of all policies, also of settled ones. Idempotent. */
  async remakeAll(tenant: string): Promise<void> {
    for (const [name, { value }] of await this.#store.allTargets(tenant))
      await this.#follow(tenant, name, value?.hosts ?? []);
  }

  /**
   * Adds the policy to the lists of these hosts, or removes it, as its targets say. Then notifies the hosts.
   * Idempotent.
   */
  async #follow(tenant: string, name: string, hosts: readonly string[]): Promise<void> {
    const names = [...new Set(hosts)];
    await mapLimited(names, POLICY_PARALLEL_HOSTS, (host) => this.#followOne(tenant, name, host));
    this.#hosts.refresh(tenant, names);
  }

  async #followOne(tenant: string, name: string, host: string): Promise<void> {
    for (let race = 0; race < POLICY_RACES_MAX; race++) {
      const [targets, assigned] = await Promise.all([
        this.#store.targets(tenant, name),
        this.#store.assignment(tenant, host),
      ]);
      const wanted = targets.value?.deployed === true && targets.value.hosts.includes(host);
      const policies = assigned.value?.policies ?? [];
      if (policies.includes(name) === wanted) return;
      const next = wanted ? [...policies, name].sort() : policies.filter((other) => other !== name);
      if (next.length > POLICIES_PER_HOST_MAX)
        throw new AppError("too_large", `The host ${host} has ${POLICIES_PER_HOST_MAX} policies already.`);
      if (
        await this.#store.assign(tenant, host, {
          seen: assigned,
          assignment: { ...assigned.value, policies: next },
          name,
          targetsRevision: targets.revision,
        })
      )
        return;
    }
    throw changedMeanwhile(name);
  }
}
