import { mapLimited } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import {
  POLICIES_PER_HOST_MAX,
  POLICY_HOSTS_PER_WRITE,
  POLICY_LISTS_READ_MAX,
  POLICY_PARALLEL_WRITES,
  POLICY_PARALLEL_HOSTS,
  POLICY_RACES_MAX,
} from "../../../common/limits.ts";
import type { Hosts } from "../hosts/index.ts";
import { changedMeanwhile, type PolicyStore, type StoredAssignment, type Versioned } from "./store.ts";

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
    const targets = await this.#store.targets(tenant, name);
    const all = names.length > POLICY_LISTS_READ_MAX ? await this.#store.assignments(tenant) : undefined;
    const wanted = new Set(targets.value?.deployed ? targets.value.hosts : []);
    const seen = { name, revision: targets.revision, wanted, all };
    await mapLimited(parts(names), POLICY_PARALLEL_WRITES, async (some) => {
      if (await this.#followTogether(tenant, some, seen)) return;
      await mapLimited(some, POLICY_PARALLEL_HOSTS, (host) => this.#followOne(tenant, name, host));
    });
    this.#hosts.refresh(tenant, names);
  }

  /** Updates the lists in one transaction. False if another writer changed one of them; nothing was written then. */
  async #followTogether(
    tenant: string,
    hosts: readonly string[],
    { name, revision, wanted, all }: SeenTargets,
  ): Promise<boolean> {
    const lists = await mapLimited(hosts, POLICY_PARALLEL_HOSTS, async (host) => {
      const seen = all ? (all.get(host) ?? NO_LIST) : await this.#store.assignment(tenant, host);
      const policies = listAfter(seen.value?.policies ?? [], { name, host, isWanted: wanted.has(host) });
      return policies && { host, seen, assignment: { ...seen.value, policies } };
    });
    const assignments = lists.flatMap((list) => list ?? []);
    if (assignments.length === 0) return true;
    return this.#store.assign(tenant, { name, targetsRevision: revision, assignments });
  }

  async #followOne(tenant: string, name: string, host: string): Promise<void> {
    for (let race = 0; race < POLICY_RACES_MAX; race++) {
      const [targets, assigned] = await Promise.all([
        this.#store.targets(tenant, name),
        this.#store.assignment(tenant, host),
      ]);
      const isWanted = targets.value?.deployed === true && targets.value.hosts.includes(host);
      const policies = listAfter(assigned.value?.policies ?? [], { name, host, isWanted });
      if (policies === undefined) return;
      const assignments = [{ host, seen: assigned, assignment: { ...assigned.value, policies } }];
      if (await this.#store.assign(tenant, { name, targetsRevision: targets.revision, assignments })) return;
    }
    throw changedMeanwhile(name);
  }
}

/** The targets of a policy as they were read. */
interface SeenTargets {
  readonly name: string;
  readonly revision: number;
  /** Hosts that are to have the policy. */
  readonly wanted: ReadonlySet<string>;
  /** Lists of all hosts; absent: they are read one by one. */
  readonly all: ReadonlyMap<string, Versioned<StoredAssignment>> | undefined;
}

const NO_LIST = { revision: 0, value: undefined };

function parts(hosts: readonly string[]): readonly (readonly string[])[] {
  const count = Math.ceil(hosts.length / POLICY_HOSTS_PER_WRITE);
  return Array.from({ length: count }, (_, at) =>
    hosts.slice(at * POLICY_HOSTS_PER_WRITE, (at + 1) * POLICY_HOSTS_PER_WRITE),
  );
}

/** The list of a host with the policy, or without it; undefined if it stays. `AppError("too_large")` for a full list. */
function listAfter(
  policies: readonly string[],
  { name, host, isWanted }: { readonly name: string; readonly host: string; readonly isWanted: boolean },
): readonly string[] | undefined {
  if (policies.includes(name) === isWanted) return undefined;
  const next = isWanted ? [...policies, name].sort() : policies.filter((other) => other !== name);
  if (next.length <= POLICIES_PER_HOST_MAX) return next;
  throw new AppError("too_large", `The host ${host} has ${POLICIES_PER_HOST_MAX} policies already.`);
}
