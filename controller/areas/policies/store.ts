import type { PolicySpec } from "../../../common/api/policies.ts";
import { AppError } from "../../../common/errors.ts";
import type { Stamped } from "../../../common/revisions.ts";
import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvCondition, KvOperation } from "../../store/kv.ts";
import { txnOnce } from "../../store/once.ts";

/**
 * A policy has two values in KvStore: `policies/definition/<name>` is its task, `policies/targets/<name>` are the hosts
 * on which it should run. `policies/host/<host>` is derived from the targets right after every change: the names of all
 * policies of a host.
 */
export interface StoredDefinition {
  /** Does not include hosts and tags, because a change of these must restart nothing. */
  readonly spec: PolicySpec;
  readonly createdMs: number;
  readonly changedMs: number;
  readonly creator: string;
}

/** Entries of a list of hosts with at least one expression, and the state of their evaluation. */
export interface StoredEntries {
  /** Names and expressions as they were sent, each once. */
  readonly list: readonly string[];
  /** The user who sent them. The expressions are evaluated by the present rights of this user. */
  readonly by: string;
  readonly held?: HeldRemoval;
  readonly taken?: TakenHosts;
}

/** Hosts that no entry matches any more, and that stay until the removal is confirmed. */
export interface HeldRemoval {
  readonly id: string;
  readonly sinceMs: number;
  readonly hosts: readonly string[];
}

/** Hosts that evaluations took off lately. */
export interface TakenHosts {
  readonly sinceMs: number;
  readonly hosts: number;
  /** Number of matched hosts at `sinceMs`. */
  readonly of: number;
}

/** Its stamp is that of the last change of the policy by a user, because each change writes the targets. */
export interface StoredTargets extends Stamped {
  /** Names of hosts. With `entries`: the hosts that these meant when they were evaluated last. */
  readonly hosts: readonly string[];
  /** Absent if the policy has names of hosts only. */
  readonly entries?: StoredEntries | undefined;
  readonly deployed: boolean;
  readonly tags: readonly string[];
  /** Hosts whose lists may not match these targets yet. Absent if all lists match. */
  readonly unsettled?: readonly string[];
}

/** A stored value and its revision. Without a value the revision is 0. */
export interface Versioned<T> {
  readonly revision: number;
  readonly value: T | undefined;
}

export interface StoredPolicy {
  readonly definition: Versioned<StoredDefinition>;
  readonly targets: Versioned<StoredTargets>;
}

/** The conf of one policy on one host. `ConfStore` keeps the bytes. */
export interface ConfReference {
  /** SHA-256 of the bytes, in hexadecimal digits. */
  readonly digest: string;
  readonly bytes: number;
  /** `createdMs` of the policy for which it was sent. Another policy of the same name does not get it. */
  readonly policyCreatedMs: number;
}

/** The policies and confs that are wanted on one host. */
export interface StoredAssignment {
  readonly policies: readonly string[];
  /** Confs by the name of their policy, which need not be in `policies`. */
  readonly confs?: Readonly<Record<string, ConfReference>>;
}

const DEFINITIONS = "policies/definition/";
const TARGETS = "policies/targets/";
const HOSTS = "policies/host/";
/** An entry for each policy whose targets have expressions, written together with the targets. */
const EVALUATED = "policies/evaluated/";

export function definitionKey(name: string): string {
  return DEFINITIONS + name;
}

export function assignmentKey(host: string): string {
  return HOSTS + host;
}

export class PolicyStore {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  async get(tenant: string, name: string): Promise<StoredPolicy> {
    const [definition, targets] = await Promise.all([this.definition(tenant, name), this.targets(tenant, name)]);
    return { definition, targets };
  }

  definition(tenant: string, name: string): Promise<Versioned<StoredDefinition>> {
    return this.#read(tenant, DEFINITIONS + name);
  }

  targets(tenant: string, name: string): Promise<Versioned<StoredTargets>> {
    return this.#read(tenant, TARGETS + name);
  }

  assignment(tenant: string, host: string): Promise<Versioned<StoredAssignment>> {
    return this.#read(tenant, HOSTS + host);
  }

  /** The lists of all hosts, by host. */
  assignments(tenant: string): Promise<ReadonlyMap<string, Versioned<StoredAssignment>>> {
    return this.#all(tenant, HOSTS);
  }

  /** All definitions, sorted by name. */
  async definitions(tenant: string): Promise<readonly Versioned<StoredDefinition>[]> {
    return [...(await this.#all<StoredDefinition>(tenant, DEFINITIONS)).values()];
  }

  async allTargets(tenant: string): Promise<ReadonlyMap<string, Versioned<StoredTargets>>> {
    return this.#all(tenant, TARGETS);
  }

  /** Names of the policies whose targets have expressions. */
  async evaluatedNames(tenant: string): Promise<readonly string[]> {
    return [...(await this.#all(tenant, EVALUATED)).keys()];
  }

  /**
   * Writes the given parts in one transaction; a part that is absent stays unchanged. Returns false if another writer
   * changed the policy after `seen`.
   */
  async write(
    tenant: string,
    name: string,
    change: { readonly seen: StoredPolicy; readonly definition?: StoredDefinition; readonly targets?: StoredTargets },
  ): Promise<boolean> {
    const then: KvOperation[] = [];
    if (change.definition) then.push({ kind: "put", key: DEFINITIONS + name, value: encodeJson(change.definition) });
    if (change.targets) then.push(...written(name, change.targets));
    return this.#txn(tenant, unchanged(name, change.seen), then);
  }

  /** Deletes both parts. Returns false if another writer changed the policy after `seen`. */
  async erase(tenant: string, name: string, seen: StoredPolicy): Promise<boolean> {
    return this.#txn(tenant, unchanged(name, seen), [
      { kind: "delete", key: DEFINITIONS + name },
      { kind: "delete", key: TARGETS + name },
      { kind: "delete", key: EVALUATED + name },
    ]);
  }

  /**
   * Writes lists of hosts in one transaction. Returns false if one of them or the policy's targets changed in the
   * meantime. A list is never deleted, only emptied, so its revision never falls.
   */
  async assign(
    tenant: string,
    change: {
      readonly name: string;
      readonly targetsRevision: number;
      readonly assignments: readonly {
        readonly host: string;
        readonly seen: Versioned<unknown>;
        readonly assignment: StoredAssignment;
      }[];
    },
  ): Promise<boolean> {
    const seen = change.assignments.map(({ host, seen: { revision } }) => ({ key: HOSTS + host, revision }));
    return this.#txn(
      tenant,
      [...seen, { key: TARGETS + change.name, revision: change.targetsRevision }],
      change.assignments.map(({ host, assignment }) => ({
        kind: "put" as const,
        key: HOSTS + host,
        value: encodeJson(assignment),
      })),
    );
  }

  async #txn(tenant: string, conditions: readonly KvCondition[], then: readonly KvOperation[]): Promise<boolean> {
    const { kv } = await this.#stores.tenant(tenant);
    return (await txnOnce(kv, { if: conditions, then })).ok;
  }

  async #read<T>(tenant: string, key: string): Promise<Versioned<T>> {
    const { kv } = await this.#stores.tenant(tenant);
    const entry = await kv.get(key);
    return entry
      ? { revision: entry.revision, value: decodeStored<T>(entry.value) }
      : { revision: 0, value: undefined };
  }

  async #all<T>(tenant: string, prefix: string): Promise<Map<string, Versioned<T>>> {
    const { kv } = await this.#stores.tenant(tenant);
    const found = new Map<string, Versioned<T>>();
    for await (const { key, revision, value } of entriesUnder(kv, prefix))
      found.set(key.slice(prefix.length), { revision, value: decodeStored<T>(value) });
    return found;
  }
}

function written(name: string, targets: StoredTargets): readonly KvOperation[] {
  const evaluated = EVALUATED + name;
  return [
    { kind: "put", key: TARGETS + name, value: encodeJson(targets) },
    targets.entries ? { kind: "put", key: evaluated, value: encodeJson({}) } : { kind: "delete", key: evaluated },
  ];
}

/**
 * Adds the unsettled hosts to new targets: all hosts before and after this change, and those that earlier changes left
 * unsettled.
 */
export function toSettle(former: StoredTargets, targets: StoredTargets): StoredTargets {
  return { ...targets, unsettled: [...new Set([...(former.unsettled ?? []), ...former.hosts, ...targets.hosts])] };
}

/** The same for a change of hosts alone: without the hosts that stay. */
export function toSettleMoved(former: StoredTargets, targets: StoredTargets): StoredTargets {
  const [before, after] = [former, targets].map((one) => new Set(one.deployed ? one.hosts : []));
  const left = [...(before ?? [])].filter((host) => !after?.has(host));
  const joined = [...(after ?? [])].filter((host) => !before?.has(host));
  return { ...targets, unsettled: [...new Set([...(former.unsettled ?? []), ...left, ...joined])] };
}

function unchanged(name: string, seen: StoredPolicy): readonly KvCondition[] {
  return [
    { key: DEFINITIONS + name, revision: seen.definition.revision },
    { key: TARGETS + name, revision: seen.targets.revision },
  ];
}

/** Error for a write that failed because another writer changed the policy first. */
export function changedMeanwhile(name: string): AppError {
  return new AppError("conflict", `The policy ${name} was changed by somebody else meanwhile; try again.`);
}
