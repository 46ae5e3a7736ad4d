import { createHash } from "node:crypto";
import type { PolicyConf } from "../../../../common/api/policies.ts";
import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError, isAppError } from "../../../../common/errors.ts";
import {
  POLICY_CONF_MAX_BYTES,
  POLICY_CONFS_PER_HOST_MAX_BYTES,
  POLICY_PARALLEL_HOSTS,
  POLICY_RACES_MAX,
} from "../../../../common/limits.ts";
import type { Hosts } from "../../hosts/index.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import type { NamedByPolicies } from "../named.ts";
import {
  changedMeanwhile,
  type ConfReference,
  type PolicyStore,
  type StoredDefinition,
  type StoredTargets,
} from "../store.ts";
import { stateOf } from "./state.ts";
import type { ConfStore } from "./store.ts";

export interface PolicyConfDependencies {
  readonly store: PolicyStore;
  readonly confs: ConfStore;
  readonly named: NamedByPolicies;
  readonly hosts: Pick<Hosts, "refresh" | "agentState">;
  /** `AppError("not_found")` if there is no such policy, or if the principal may not see it. */
  readonly visible: (principal: Principal, name: string) => Promise<VisiblePolicy>;
}

interface VisiblePolicy {
  readonly definition: StoredDefinition;
  readonly targets: StoredTargets;
}

/** A policy, and the hosts on which its conf changes. */
export interface ConfTargets {
  readonly name: string;
  /** Names of hosts, and expressions that hosts match (`HostTargets`). */
  readonly hosts: readonly string[];
  /** Called with each expression that matches no host. */
  readonly warn?: (text: string) => void;
}

/** A conf to be placed, and the policy and tenant that it is for. */
interface Placing {
  readonly tenant: string;
  readonly name: string;
  readonly content: Uint8Array;
  readonly digest: string;
  /** Revision of the stored bytes. Undefined if they were removed at once. */
  readonly bytesRevision: number | undefined;
}

/**
 * Confs of policies: bytes that the agents of hosts write as `<policy>.conf` beside the working files of the policy.
 * They are part of the desired state, so a host that is away gets them, or loses them, when it comes back.
 */
export class PolicyConfs {
  readonly #with: PolicyConfDependencies;

  constructor(dependencies: PolicyConfDependencies) {
    this.#with = dependencies;
  }

  /**
   * Gives the hosts this conf, in place of the one that they had. A host on which the policy is not deployed keeps it
   * until the policy comes. `AppError("not_found")` for an unknown policy or host, `too_large` for a large conf.
   */
  async place(
    principal: Principal,
    { name, hosts, content, warn }: ConfTargets & { readonly content: Uint8Array },
  ): Promise<readonly PolicyConf[]> {
    requirePermission(principal, "policies:run");
    const policy = await this.#with.visible(principal, name);
    if (content.length > POLICY_CONF_MAX_BYTES)
      throw new AppError("too_large", `A conf has at most ${POLICY_CONF_MAX_BYTES} bytes.`);
    const { hosts: names, warnings } = await this.#with.named.resolved(principal, hosts);
    for (const warning of warnings) warn?.(warning);
    const digest = createHash("sha256").update(content).digest("hex");
    const bytesRevision = await this.#with.confs.putBytes(principal.tenant, name, { digest, bytes: content });
    const placing = { tenant: principal.tenant, name, content, digest, bytesRevision };
    const refused = await this.#changeAll(placing, names, (host) => this.#placeOne(placing, host));
    return mapLimited([...names.entries()], POLICY_PARALLEL_HOSTS, async ([at, host]) => {
      const message = refused[at];
      if (message !== undefined) return { host, state: "failed", message, digest, bytes: content.length } as const;
      return this.#state(principal, host, { name, policy, wanted: { digest, bytes: content.length } });
    });
  }

  /** Removes the conf of the policy from the hosts. Its answer has a message for a host that had none. */
  async withdraw(principal: Principal, { name, hosts, warn }: ConfTargets): Promise<readonly PolicyConf[]> {
    requirePermission(principal, "policies:run");
    const policy = await this.#with.visible(principal, name);
    const { tenant } = principal;
    const references = await this.#with.confs.references(tenant, name);
    // A host that was removed from odp may still have a reference.
    const left = hosts.filter((host) => references.has(host));
    const others = hosts.filter((host) => !references.has(host));
    const { hosts: present, warnings } = await this.#with.named.resolved(principal, others);
    for (const warning of warnings) warn?.(warning);
    const names = [...new Set([...left, ...present])];
    const had = await this.#changeAll({ tenant, name }, names, (host) => this.#withdrawOne(tenant, name, host));
    return mapLimited([...names.entries()], POLICY_PARALLEL_HOSTS, async ([at, host]) => {
      const state = await this.#state(principal, host, { name, policy });
      return had[at] || state.state !== "ok" ? state : { ...state, message: "It had no conf of this policy." };
    });
  }

  /** Hosts that have or get a conf of the policy, and those of its hosts that still have one to lose. */
  async states(principal: Principal, name: string): Promise<readonly PolicyConf[]> {
    requirePermission(principal, "policies:read");
    const policy = await this.#with.visible(principal, name);
    const references = new Map(
      [...(await this.#with.confs.references(principal.tenant, name))].filter(([, each]) => isOf(each, policy)),
    );
    const hosts = [...new Set([...references.keys(), ...policy.targets.hosts])].sort();
    const states = await mapLimited(hosts, POLICY_PARALLEL_HOSTS, (host) =>
      this.#state(principal, host, { name, policy, wanted: references.get(host) }),
    );
    return states.filter(({ host, state }) => references.has(host) || state === "waiting");
  }

  /** Removes confs whose policy is gone. Idempotent. */
  async sweep(tenant: string): Promise<void> {
    for (const name of await this.#with.confs.policies(tenant)) await this.sweepOf(tenant, name);
  }

  /** The same for the confs of one name. The policy of that name, if there is one, keeps its own. */
  async sweepOf(tenant: string, name: string): Promise<void> {
    const { store, confs } = this.#with;
    for (const [host, reference] of await confs.references(tenant, name)) {
      const { value } = await store.definition(tenant, name);
      if (value === undefined || !isOf(reference, { definition: value })) await this.#withdrawOne(tenant, name, host);
    }
    await confs.sweep(tenant, name);
  }

  /** Changes the confs of the hosts. Also if a change throws, the changed hosts are told and unused bytes are removed. */
  async #changeAll<T>(
    { tenant, name }: Pick<Placing, "tenant" | "name">,
    hosts: readonly string[],
    change: (host: string) => Promise<T>,
  ): Promise<readonly T[]> {
    try {
      return await mapLimited(hosts, POLICY_PARALLEL_HOSTS, change);
    } finally {
      this.#with.hosts.refresh(tenant, hosts);
      await this.#with.confs.sweep(tenant, name);
    }
  }

  /** Returns the reason why this host cannot have the conf; undefined when it is placed. */
  async #placeOne(placing: Placing, host: string): Promise<string | undefined> {
    try {
      await this.#keep(placing, host);
      return undefined;
    } catch (error) {
      if (!isAppError(error, "too_large", "conflict")) throw error;
      return error.message;
    }
  }

  async #keep({ tenant, name, content, digest, ...placing }: Placing, host: string): Promise<void> {
    const { store, confs } = this.#with;
    for (let race = 0, { bytesRevision } = placing; race < POLICY_RACES_MAX; race++) {
      const definition = await store.definition(tenant, name);
      if (definition.value === undefined) throw new AppError("not_found", `There is no policy ${name}.`);
      // Another call may have removed the bytes before a host had a reference to them.
      if (race > 0) bytesRevision = await confs.putBytes(tenant, name, { digest, bytes: content });
      if (bytesRevision === undefined) continue;
      const seen = await store.assignment(tenant, host);
      const reference = { digest, bytes: content.length, policyCreatedMs: definition.value.createdMs };
      requireRoom(host, { ...seen.value?.confs, [name]: reference });
      if (await confs.change(tenant, { name, host, seen, conf: { reference, definition, bytesRevision } })) return;
    }
    throw changedMeanwhile(name);
  }

  /** Returns false if the host had no conf of the policy. */
  async #withdrawOne(tenant: string, name: string, host: string): Promise<boolean> {
    const { store, confs } = this.#with;
    for (let race = 0; race < POLICY_RACES_MAX; race++) {
      const seen = await store.assignment(tenant, host);
      if (seen.value?.confs === undefined || !Object.hasOwn(seen.value.confs, name)) return false;
      if (await confs.change(tenant, { name, host, seen })) return true;
    }
    throw changedMeanwhile(name);
  }

  async #state(
    principal: Principal,
    host: string,
    { name, policy, wanted }: { name: string; policy: VisiblePolicy; wanted?: Wanted | undefined },
  ): Promise<PolicyConf> {
    const { deployed, hosts } = policy.targets;
    const isAssigned = deployed && hosts.includes(host);
    const agent = await this.#with.hosts.agentState(principal, host);
    const { digest = "", bytes = 0 } = wanted ?? {};
    return { host, ...stateOf({ isAssigned, policy: name, digest, agent }), digest, bytes };
  }
}

type Wanted = Pick<ConfReference, "digest" | "bytes">;

function isOf({ policyCreatedMs }: ConfReference, { definition }: Pick<VisiblePolicy, "definition">): boolean {
  return policyCreatedMs === definition.createdMs;
}

function requireRoom(host: string, confs: Readonly<Record<string, ConfReference>>): void {
  const total = Object.values(confs).reduce((sum, { bytes }) => sum + bytes, 0);
  if (total > POLICY_CONFS_PER_HOST_MAX_BYTES)
    throw new AppError(
      "too_large",
      `The confs of ${host} would have more than ${POLICY_CONFS_PER_HOST_MAX_BYTES} bytes.`,
    );
}
