import { policyText } from "../../../common/agent/policy-text.ts";
import type { PolicySpec } from "../../../common/api/policies.ts";
import { mapLimited } from "../../../common/concurrency.ts";
import { AppError, isAppError } from "../../../common/errors.ts";
import { POLICY_PARALLEL_HOSTS, POLICY_RACES_MAX } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Depots } from "../depots/index.ts";
import type { DepotToDeploy, DesiredPolicy } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { ConfStore } from "./conf/store.ts";
import type { ConfReference, PolicyStore, StoredDefinition, Versioned } from "./store.ts";

interface Dependencies {
  readonly store: PolicyStore;
  readonly confs: Pick<ConfStore, "bytes">;
  readonly runtime: Pick<Runtime, "log">;
  readonly depots: Pick<Depots, "toDeploy">;
  /** Returns the principal by which the controller itself acts in a tenant. */
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
}

interface Desired {
  readonly revision: number;
  readonly policies: readonly DesiredPolicy[];
}

const REPLACED = "replaced";

/** Determines the policies that a host must run, with the content of their depots. */
export class DesiredPolicies {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /**
   * Returns the policies and their revision. The revision rises with every change for the host: it is the highest one
   * of the host's list and of the policies in it. When a policy is removed from the list, the list is written, so the
   * revision also rises then.
   */
  async of(tenant: string, host: string): Promise<Desired> {
    for (let race = 0; race < POLICY_RACES_MAX; race++) {
      const desired = await this.#read(tenant, host);
      if (desired) return desired;
    }
    throw new AppError("conflict", `The confs of ${host} change all the time.`);
  }

  /** Undefined if a conf was replaced after the host's list was read. */
  async #read(tenant: string, host: string): Promise<Desired | undefined> {
    const { store } = this.#with;
    const assigned = await store.assignment(tenant, host);
    const { policies: names = [], confs = {} } = assigned.value ?? {};
    const definitions = await mapLimited(names, POLICY_PARALLEL_HOSTS, (name) => store.definition(tenant, name));
    const policies = await mapLimited(definitions, POLICY_PARALLEL_HOSTS, (definition) =>
      this.#policy(tenant, definition, confs),
    );
    if (policies.includes(REPLACED)) return undefined;
    const revision = Math.max(assigned.revision, ...definitions.map((definition) => definition.revision));
    return { revision, policies: policies.flatMap((policy) => (policy && policy !== REPLACED ? [policy] : [])) };
  }

  async #policy(
    tenant: string,
    { revision, value }: Versioned<StoredDefinition>,
    confs: Readonly<Record<string, ConfReference>>,
  ): Promise<DesiredPolicy | typeof REPLACED | undefined> {
    if (value === undefined) return undefined;
    const { name } = value.spec;
    const reference = Object.hasOwn(confs, name) ? confs[name] : undefined;
    const digest = reference?.policyCreatedMs === value.createdMs ? reference.digest : undefined;
    const conf = digest === undefined ? undefined : await this.#with.confs.bytes(tenant, name, digest);
    if (digest !== undefined && !conf) return REPLACED;
    const depot = await this.#depotOf(tenant, value.spec);
    return { name, revision, spec: policyText(value.spec), ...(conf && { conf }), ...(depot && { depot }) };
  }

  async #depotOf(tenant: string, spec: PolicySpec): Promise<DepotToDeploy | undefined> {
    if (spec.kind !== "command" || spec.ctype !== 0 || !spec.depotname) return undefined;
    const { depots, actAs, runtime } = this.#with;
    try {
      const depot = await depots.toDeploy(await actAs(tenant, ""), spec.depotname, spec.depotversion);
      return spec.depotcommand ? { ...depot, command: spec.depotcommand } : depot;
    } catch (error) {
      // A policy without its depot must not block the other policies of the host. Its runs fail with a message.
      if (!isAppError(error, "not_found")) throw error;
      runtime.log.warn({ err: error, tenant, policy: spec.name }, "the depot of a policy is gone");
      return undefined;
    }
  }
}
