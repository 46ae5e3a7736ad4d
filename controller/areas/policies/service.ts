import type { PolicyChange, PolicyRecord, PolicySpec } from "../../../common/api/policies.ts";
import { AppError } from "../../../common/errors.ts";
import { POLICY_RACES_MAX } from "../../../common/limits.ts";
import { newStamp, requireExpected, revisionOf, type Expected } from "../../../common/revisions.ts";
import { fileName } from "../../../common/paths.ts";
import { listed } from "../../../common/text/listed.ts";
import { requireSomeMember } from "../../../common/members.ts";
import { isExpression } from "../../../common/targets/index.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { Depots } from "../depots/index.ts";
import type { Controllers, DesiredPolicy, DesiredStateSource, Hosts, HostTargets } from "../hosts/index.ts";
import type { Authors } from "../jobs/index.ts";
import type { Objects, VisibleRecords } from "../objects/index.ts";
import { allows, requirePermission, type Principal } from "../permissions/index.ts";
import type { Rules } from "../rules/index.ts";
import { PolicyAssignments } from "./assignments.ts";
import { POLICY_PATH, rowOf } from "./classes.ts";
import { PolicyConfs } from "./conf/service.ts";
import { ConfStore } from "./conf/store.ts";
import { DepotUses } from "./depot-uses.ts";
import { DesiredPolicies } from "./desired.ts";
import { idleMembers } from "./idle-members.ts";
import { changedInput } from "./input.ts";
import { NamedByPolicies } from "./named.ts";
import {
  changedMeanwhile,
  PolicyStore,
  toSettle,
  type StoredDefinition,
  type StoredPolicy,
  type StoredTargets,
} from "./store.ts";
import type { HoldLimit } from "./targets/next.ts";
import { PolicyStates } from "./states/states.ts";
import { PolicyTargets } from "./targets/service.ts";
import type { PolicyInput } from "./types.ts";

export interface PolicyDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly rules: Pick<Rules, "load">;
  readonly depots: Pick<Depots, "toDeploy" | "users">;
  readonly hosts: Pick<Hosts, "refresh" | "agentState" | "wayTo" | "policyReports">;
  readonly targets: Pick<HostTargets, "hosts" | "among" | "existing">;
  /** Users with their present rights. Absent: none is known, so expressions match no host when they are evaluated again. */
  readonly authors?: Authors;
  readonly controllers: Controllers;
  /** Bounds of removals that are carried out without a confirmation. */
  readonly limit: HoldLimit;
  readonly objects: Pick<Objects, "visible">;
  /** Returns the principal by which the controller itself acts in a tenant. */
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
}

interface PolicyRemoval {
  readonly expected?: Expected | undefined;
  /** True: also a policy that is deployed. */
  readonly force?: boolean | undefined;
}

export interface PolicyDeployment {
  readonly expected?: Expected | undefined;
  /** Called with each expression that matches no host. */
  readonly warn?: ((text: string) => void) | undefined;
}

/** Both stored parts of an existing policy. */
interface Found {
  readonly seen: StoredPolicy;
  readonly definition: StoredDefinition;
  readonly targets: StoredTargets;
}

const NO_TARGETS: StoredTargets = { hosts: [], deployed: false, tags: [] };

export class PolicyService implements DesiredStateSource {
  readonly confs: PolicyConfs;
  readonly targets: PolicyTargets;
  readonly states: PolicyStates;
  readonly #store: PolicyStore;
  readonly #runtime: Runtime;
  readonly #named: NamedByPolicies;
  readonly #objects: PolicyDependencies["objects"];
  readonly #assignments: PolicyAssignments;
  readonly #desired: DesiredPolicies;

  constructor(dependencies: PolicyDependencies) {
    const { stores, runtime, hosts, depots } = dependencies;
    const store = (this.#store = new PolicyStore(stores));
    this.#runtime = runtime;
    this.#named = new NamedByPolicies(dependencies);
    this.#objects = dependencies.objects;
    const assignments = (this.#assignments = new PolicyAssignments({ store, hosts }));
    const confs = new ConfStore(stores);
    this.#desired = new DesiredPolicies({ ...dependencies, store, confs });
    const visible = (principal: Principal, name: string): Promise<Found> => this.#visible(principal, name);
    this.confs = new PolicyConfs({ store, confs, hosts, named: this.#named, visible });
    const names = (principal: Principal): Promise<ReadonlySet<string>> => this.#names(principal);
    this.targets = new PolicyTargets({
      ...dependencies,
      store,
      assignments,
      named: this.#named,
      visible: (principal) => this.list(principal),
    });
    this.states = new PolicyStates({ store, hosts, policies: this });
    depots.users.add(new DepotUses({ store, hosts, clock: runtime.clock, visible: names }));
  }

  /**
   * Creates the policy, or replaces the one of that name. With `hosts`, it is deployed to exactly these hosts, and
   * stops on others that it had before; an empty list undeploys it. If the spec is unchanged, the definition and its
   * revision stay, so agents restart nothing. `AppError("conflict")` if another writer changed the policy at the same
   * time.
   */
  async save(principal: Principal, input: PolicyInput, expected?: Expected): Promise<PolicyRecord> {
    requirePermission(principal, "policies:write");
    const { name } = input.spec;
    await this.#named.check(principal, input.spec);
    const seen = await this.#store.get(principal.tenant, name);
    if (!(await this.#replace(principal, input, seen, expected))) {
      const now = await this.#store.get(principal.tenant, name);
      requireExpected(expected, `The policy ${name}`, now.definition.value && (now.targets.value ?? NO_TARGETS));
      throw changedMeanwhile(name);
    }
    return this.get(principal, name);
  }

  /**
   * Changes the given members. Changes of other members at the same time are kept. `AppError("invalid")` if the change
   * names no member, or one that the policy's kind lacks.
   */
  async edit(
    principal: Principal,
    { name, ...change }: PolicyChange,
    { expected, warn }: PolicyDeployment = {},
  ): Promise<PolicyRecord> {
    requirePermission(principal, "policies:write");
    requireSomeMember(change, `the policy ${name}`);
    await this.#visible(principal, name);
    for (let race = 0; race < POLICY_RACES_MAX; race++) {
      const { seen, definition } = await this.#find(principal.tenant, name);
      const input = { ...changedInput(definition.spec, change), ...(warn && { warn }) };
      await this.#named.check(principal, input.spec);
      if (await this.#replace(principal, input, seen, expected)) return this.get(principal, name);
    }
    throw changedMeanwhile(name);
  }

  /** Writes the policy in place of what was `seen`. False: another writer came first, and nothing was changed. */
  async #replace(
    principal: Principal,
    input: PolicyInput,
    seen: StoredPolicy,
    expected: Expected | undefined,
  ): Promise<boolean> {
    const { name } = input.spec;
    if (seen.definition.value) await this.#refuseOutsideRule(principal, seen.definition.value, seen.targets.value);
    const former = seen.targets.value ?? NO_TARGETS;
    requireExpected(expected, `The policy ${name}`, seen.definition.value && former);
    const targets = toSettle(former, {
      ...former,
      stamp: newStamp(principal.user, this.#runtime),
      ...(input.tags && { tags: input.tags }),
      ...(input.hosts && (await this.targets.placed(principal, input.hosts, { former, ...input }))),
    });
    if (targets.deployed) requirePermission(principal, "policies:run");
    if (targets.deployed && !input.hosts) await this.#named.requireRunnable(principal, input.spec, namedHosts(targets));
    const nowMs = this.#runtime.clock.nowMs();
    const definition = definitionOf(input.spec, { old: seen.definition.value, user: principal.user, nowMs });
    const next = definition.definition ?? seen.definition.value;
    if (next) await this.#refuseOutsideRule(principal, next, targets);
    if (!(await this.#store.write(principal.tenant, name, { seen, targets, ...definition }))) return false;
    await this.#assignments.settle(principal.tenant, name);
    for (const idle of idleMembers(input.spec)) input.warn?.(idle);
    return true;
  }

  /** Policies that the principal may see, without columns that are hidden from it. */
  async list(principal: Principal): Promise<readonly PolicyRecord[]> {
    requirePermission(principal, "policies:read");
    const { sees, shown } = await this.#filter(principal);
    return (await this.all(principal)).filter((policy) => sees(policy, rowOf(policy))).map(shown);
  }

  /** All policies, for their class. The query area applies the rules for rows and columns. */
  async all(principal: Principal): Promise<readonly PolicyRecord[]> {
    requirePermission(principal, "policies:read");
    const targets = await this.#store.allTargets(principal.tenant);
    const definitions = await this.#store.definitions(principal.tenant);
    return definitions.flatMap(({ value }) =>
      value ? [record(principal, value, targets.get(value.spec.name)?.value ?? NO_TARGETS)] : [],
    );
  }

  async #names(principal: Principal): Promise<ReadonlySet<string>> {
    if (!allows(principal, "policies:read")) return new Set();
    return new Set((await this.list(principal)).map(({ name }) => name));
  }

  /** Names of the policies that need the rule, as far as the principal may see them. */
  async needing(principal: Principal, rule: string): Promise<readonly string[]> {
    requirePermission(principal, "rules:write");
    if (!allows(principal, "policies:read")) return [];
    return (await this.list(principal)).filter((policy) => policy.rule === rule).map(({ name }) => name);
  }

  async get(principal: Principal, name: string): Promise<PolicyRecord> {
    requirePermission(principal, "policies:read");
    const { definition, targets } = await this.#visible(principal, name);
    return (await this.#filter(principal)).shown(record(principal, definition, targets));
  }

  /**
   * Deletes the policy and its confs. Its depot stays. `AppError("conflict")` if it is deployed, unless `force` is true:
   * then it is stopped on all hosts before.
   */
  async remove(principal: Principal, name: string, { expected, force = false }: PolicyRemoval = {}): Promise<void> {
    requirePermission(principal, "policies:write");
    await this.#visible(principal, name);
    const stopped = (now: StoredTargets): StoredTargets => {
      if (!force) requireUndeployed(name, now);
      return undeployed(now);
    };
    for (let race = 0; race < POLICY_RACES_MAX; race++) {
      const first = race === 0 ? expected : undefined;
      await this.#setTargets(principal, name, stopped, first);
      const { seen, targets } = await this.#find(principal.tenant, name);
      // The lists of the hosts must be updated before. Otherwise they would contain a deleted policy forever.
      if (targets.deployed || targets.unsettled || !(await this.#store.erase(principal.tenant, name, seen))) continue;
      return this.confs.sweepOf(principal.tenant, name);
    }
    throw changedMeanwhile(name);
  }

  /** Deploys the policy to its hosts. `hosts` are added to them. */
  async deploy(
    principal: Principal,
    name: string,
    hosts: readonly string[] = [],
    { expected, warn }: PolicyDeployment = {},
  ): Promise<PolicyRecord> {
    requirePermission(principal, "policies:run");
    const { definition } = await this.#visible(principal, name);
    await this.#named.check(principal, definition.spec);
    const deployed = (now: StoredTargets): Promise<StoredTargets> =>
      this.targets.deployed(principal, name, { now, hosts, warn, spec: definition.spec });
    await this.#setTargets(principal, name, deployed, expected);
    return this.get(principal, name);
  }

  /** Stops the policy on all its hosts. The hosts are remembered for the next deployment. */
  async undeploy(principal: Principal, name: string, expected?: Expected): Promise<PolicyRecord> {
    requirePermission(principal, "policies:run");
    await this.#visible(principal, name);
    await this.#setTargets(principal, name, undeployed, expected);
    return this.get(principal, name);
  }

  /** Policies of a host, for its agent. The revision rises with every change of them. */
  desired(
    tenant: string,
    host: string,
  ): Promise<{ readonly revision: number; readonly policies: readonly DesiredPolicy[] }> {
    return this.#desired.of(tenant, host);
  }

  /** Updates the lists of all hosts to match the targets, and removes confs of deleted policies. Idempotent. */
  async repair(tenant: string): Promise<void> {
    await this.confs.sweep(tenant);
    await this.#assignments.settleAll(tenant);
    await this.#assignments.remakeAll(tenant);
  }

  /** Completes changes that were interrupted because a controller ended or the store did not answer. Idempotent. */
  async maintain(tenant: string): Promise<void> {
    await this.#assignments.settleAll(tenant);
    await this.targets.maintain(tenant);
  }

  /** Finds the policy. `AppError("not_found")` also if the principal may not see it. */
  async #visible(principal: Principal, name: string): Promise<Found> {
    const found = await this.#find(principal.tenant, name);
    const policy = record(principal, found.definition, found.targets);
    if ((await this.#filter(principal)).sees(policy, rowOf(policy))) return found;
    throw unknownPolicy(name);
  }

  #filter(principal: Principal): Promise<VisibleRecords> {
    return this.#objects.visible.records(principal, `${principal.ospace}${POLICY_PATH}`);
  }

  async #refuseOutsideRule(
    principal: Principal,
    definition: StoredDefinition,
    targets: StoredTargets = NO_TARGETS,
  ): Promise<void> {
    const policy = record(principal, definition, targets);
    if ((await this.#filter(principal)).sees(policy, rowOf(policy))) return;
    throw new AppError("denied", `The policy ${policy.name} is not among the policies that this user may change.`);
  }

  async #find(tenant: string, name: string): Promise<Found> {
    const seen = await this.#store.get(tenant, fileName(name));
    const definition = seen.definition.value;
    if (definition === undefined) throw unknownPolicy(name);
    return { seen, definition, targets: seen.targets.value ?? NO_TARGETS };
  }

  async #setTargets(
    principal: Principal,
    name: string,
    change: (now: StoredTargets) => StoredTargets | Promise<StoredTargets>,
    expected: Expected | undefined,
  ): Promise<void> {
    const { tenant } = principal;
    for (let race = 0; race < POLICY_RACES_MAX; race++) {
      const { seen, targets: now } = await this.#find(tenant, name);
      requireExpected(expected, `The policy ${name}`, now);
      const targets = toSettle(now, { ...(await change(now)), stamp: newStamp(principal.user, this.#runtime) });
      if (await this.#store.write(tenant, name, { seen, targets })) return this.#assignments.settle(tenant, name);
    }
    throw changedMeanwhile(name);
  }
}

/** The hosts that the entries name. Those of expressions show in their states if the policy cannot run there. */
function namedHosts({ hosts, entries }: StoredTargets): readonly string[] {
  return entries ? entries.list.filter((entry) => !isExpression(entry)) : hosts;
}

/** The new definition; none if the spec is unchanged. */
function definitionOf(
  spec: PolicySpec,
  { old, user, nowMs }: { readonly old: StoredDefinition | undefined; readonly user: string; readonly nowMs: number },
): { definition?: StoredDefinition } {
  if (old !== undefined && JSON.stringify(old.spec) === JSON.stringify(spec)) return {};
  const { createdMs = nowMs, creator = user } = old ?? {};
  return { definition: { spec, changedMs: nowMs, createdMs, creator } };
}

/** A held change of the targets ends. The expressions are evaluated again when the policy is deployed. */
function undeployed(now: StoredTargets): StoredTargets {
  const { list, by } = now.entries ?? {};
  return { ...now, deployed: false, ...(list && by !== undefined && { entries: { list, by } }) };
}

function requireUndeployed(name: string, { deployed, hosts }: StoredTargets): void {
  if (!deployed) return;
  throw new AppError(
    "conflict",
    `The policy ${name} is deployed to ${listed(hosts)}. Undeploy it first, or send force=true to stop and delete it.`,
  );
}

function record(principal: Principal, definition: StoredDefinition, targets: StoredTargets): PolicyRecord {
  const { spec, createdMs, changedMs, creator } = definition;
  return {
    ...spec,
    id: `policy:${spec.name}`,
    class: `${principal.ospace}${POLICY_PATH}`,
    tags: [...targets.tags],
    hosts: [...(targets.entries?.list ?? targets.hosts)],
    ...(targets.entries && { matched: [...targets.hosts] }),
    status: targets.deployed ? "deployed" : "undeployed",
    created: createdMs,
    changed: changedMs,
    creator,
    revision: revisionOf(targets),
  };
}

function unknownPolicy(name: string): AppError {
  return new AppError("not_found", `There is no policy ${name}.`);
}
