import type { HeldTargets, PolicyRecord } from "../../../../common/api/policies.ts";
import { AppError, errorText } from "../../../../common/errors.ts";
import { POLICY_HOSTS_MAX, POLICY_RACES_MAX } from "../../../../common/limits.ts";
import { newStamp } from "../../../../common/revisions.ts";
import { isExpression } from "../../../../common/targets/index.ts";
import { requireAllOwnGrants, requirePermission, type Principal } from "../../permissions/index.ts";
import type { Controllers } from "../../hosts/index.ts";
import { type ForHosts, type NamedByPolicies, tooManyHosts } from "../named.ts";
import { changedMeanwhile, type StoredTargets, toSettleMoved } from "../store.ts";
import { ChangedHosts } from "./changed-hosts.ts";
import { type EvaluationDependencies, isEvaluated, PolicyEvaluation } from "./evaluation.ts";
import { confirmedTargets } from "./next.ts";

export interface PolicyTargetsDependencies extends EvaluationDependencies {
  readonly named: NamedByPolicies;
  readonly controllers: Pick<Controllers, "own" | "all">;
  /** Policies that the principal may see, without hidden members. */
  readonly visible: (principal: Principal) => Promise<readonly Partial<PolicyRecord>[]>;
}

type Placed = Pick<StoredTargets, "hosts" | "deployed"> & { readonly entries: StoredTargets["entries"] };

/** The hosts of policies that are named by expressions: their evaluation, and removals that wait for a confirmation. */
export class PolicyTargets {
  readonly changed: ChangedHosts;
  readonly #with: PolicyTargetsDependencies;
  readonly #evaluation: PolicyEvaluation;
  /** Numbers of held removals as last seen, by tenant. */
  readonly #held = new Map<string, number>();

  constructor(dependencies: PolicyTargetsDependencies) {
    this.#with = dependencies;
    this.#evaluation = new PolicyEvaluation(dependencies);
    this.changed = new ChangedHosts({
      runtime: dependencies.runtime,
      evaluate: (tenant, hosts) => this.evaluate(tenant, hosts),
    });
  }

  /** Held removals of all tenants, for `/readyz`. At most as old as the last maintenance. */
  get heldCount(): number {
    return [...this.#held.values()].reduce((sum, count) => sum + count, 0);
  }

  /**
   * The hosts of a policy for these entries, by the principal's rights. If a deployed policy has the same entries
   * already, this is an evaluation like all others, so a removal of many hosts is held also when the policy is saved
   * again. `warn` is called with each expression that matches no host.
   */
  async placed(principal: Principal, list: readonly string[], placing: Placing): Promise<Placed> {
    requirePermission(principal, "policies:write");
    return this.#placed(principal, list, placing);
  }

  async #placed(principal: Principal, list: readonly string[], { former, ...naming }: Placing): Promise<Placed> {
    const { named } = this.#with;
    if (!list.some(isExpression)) {
      const hosts = await named.hosts(principal, list, naming);
      return { hosts, deployed: hosts.length > 0, entries: undefined };
    }
    requireAllOwnGrants(principal);
    const entries = { list: [...new Set(list)], by: principal.user };
    const { warnings, ...found } = await named.resolved(principal, list, naming);
    for (const warning of warnings) naming.warn?.(warning);
    if (!isEvaluated(former) || !former.deployed || !isSame(former.entries.list, entries.list))
      return { hosts: found.hosts, deployed: true, entries };
    const now = { ...former, entries: { ...former.entries, ...entries } };
    const gone = await this.#evaluation.gone(principal.tenant, now, new Set(found.hosts));
    return this.#evaluation.decided(now, { wanted: found.hosts, named: found.named, gone }) ?? now;
  }

  /** The targets of a policy that is deployed to its hosts and to these. */
  async deployed(principal: Principal, name: string, { now, hosts, ...naming }: Deploying): Promise<StoredTargets> {
    requirePermission(principal, "policies:run");
    const list = [...new Set([...(now.entries?.list ?? now.hosts), ...hosts])];
    if (list.length === 0) throw new AppError("invalid", `The policy ${name} has no hosts to be deployed to.`);
    if (list.some(isExpression))
      return { ...now, ...(await this.#placed(principal, list, { former: now, ...naming })) };
    // The stored names are not checked: their hosts may have been removed.
    await this.#with.named.hosts(principal, hosts, naming);
    if (!now.deployed) await this.#with.named.requireRunnable(principal, naming.spec, now.hosts);
    if (list.length > POLICY_HOSTS_MAX) throw tooManyHosts();
    return { ...now, hosts: list, deployed: true };
  }

  /** Removals of hosts that wait for a confirmation, of the policies that the principal may see. */
  async held(principal: Principal): Promise<readonly HeldTargets[]> {
    requirePermission(principal, "policies:read");
    const visible = new Map((await this.#with.visible(principal)).map((policy) => [policy.name, policy]));
    const all = await this.#with.store.allTargets(principal.tenant);
    return [...all].flatMap(([policy, { value }]) => {
      const { held, by } = value?.entries ?? {};
      if (!held || !visible.has(policy)) return [];
      const { matched = [] } = visible.get(policy) ?? {};
      const shown = new Set(matched);
      const hosts = held.hosts.filter((host) => shown.has(host));
      return [{ id: held.id, policy, since: held.sinceMs, username: by ?? "", matched: matched.length, hosts }];
    });
  }

  /**
   * Takes the policy off the hosts of a held removal. `AppError("not_found")` if there is none of this id, also because
   * more hosts were added to it; `denied` to a principal who may not see all of its hosts.
   */
  async confirm(principal: Principal, id: string): Promise<HeldTargets> {
    requirePermission(principal, "policies:run");
    const { store, runtime, assignments } = this.#with;
    const { tenant } = principal;
    const removal = (await this.held(principal)).find((held) => held.id === id);
    if (!removal) throw noneHeld(id);
    const { policy } = removal;
    for (let race = 0; race < POLICY_RACES_MAX; race++) {
      const seen = await store.get(tenant, policy);
      const now = seen.targets.value;
      const held = now?.entries?.held;
      if (!isEvaluated(now) || held?.id !== id) throw noneHeld(id);
      if (removal.hosts.length < held.hosts.length)
        throw new AppError("denied", `${principal.user} may not see all hosts that the policy ${policy} would lose.`);
      const next = { ...confirmedTargets(now, held), stamp: newStamp(principal.user, runtime) };
      if (!(await store.write(tenant, policy, { seen, targets: toSettleMoved(now, next) }))) continue;
      await assignments.settle(tenant, policy);
      await this.count(tenant);
      return removal;
    }
    throw changedMeanwhile(policy);
  }

  /** Evaluates the policies of a tenant that have expressions. Without `hosts`: for all hosts. Idempotent. */
  async evaluate(tenant: string, hosts?: readonly string[]): Promise<void> {
    const names = await this.#with.store.evaluatedNames(tenant);
    let held = 0;
    for (const name of names) {
      try {
        if (await this.#evaluation.evaluate(tenant, name, hosts)) held++;
      } catch (error) {
        const about = { tenant, policy: name, reason: errorText(error) };
        this.#with.runtime.log.warn(about, "the hosts of a policy are evaluated again later");
      }
    }
    this.#held.set(tenant, held);
  }

  /** Counts the held removals of a tenant. */
  async count(tenant: string): Promise<void> {
    const names = await this.#with.store.evaluatedNames(tenant);
    const all = names.length === 0 ? new Map<string, never>() : await this.#with.store.allTargets(tenant);
    this.#held.set(tenant, [...all.values()].filter(({ value }) => value?.entries?.held).length);
  }

  /**
   * Evaluates all policies with expressions, for changes that no controller noticed: rights of users, and hosts of a
   * controller that ended. The controller with the smallest id does it.
   */
  async maintain(tenant: string): Promise<void> {
    const { controllers } = this.#with;
    if (controllers.all().some(({ id }) => id < controllers.own)) await this.count(tenant);
    else await this.evaluate(tenant);
  }

  leave(tenant: string): void {
    this.changed.leave(tenant);
    this.#held.delete(tenant);
  }

  close(): Promise<void> {
    return this.changed.close();
  }
}

interface Deploying extends Required<Pick<ForHosts, "spec">>, Pick<ForHosts, "warn"> {
  readonly now: StoredTargets;
  /** Entries that are added. */
  readonly hosts: readonly string[];
}

interface Placing extends ForHosts {
  /** The targets that the policy has. */
  readonly former: StoredTargets;
}

function isSame(list: readonly string[], other: readonly string[]): boolean {
  return list.length === other.length && list.every((entry, at) => entry === other[at]);
}

function noneHeld(id: string): AppError {
  return new AppError(
    "not_found",
    `No change with the id ${id} is held. It was confirmed, its hosts match again, or more hosts were added to it: see GET /monitoring/targets.`,
  );
}
