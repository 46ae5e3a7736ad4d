import type { CommandPolicySpec } from "../../../../common/api/policies.ts";
import type { HostsOverSsh } from "../../hosts/index.ts";
import type { PolicyStore, StoredAssignment, StoredDefinition, Versioned } from "../store.ts";
import type { PolicyOnHost } from "./marks.ts";
import type { WantedRuns } from "./task.ts";
import { unableOverSsh } from "./unable.ts";

export interface PlanParts {
  readonly store: Pick<PolicyStore, "assignments" | "definitions">;
  readonly hosts: Pick<HostsOverSsh, "all">;
}

/** A policy that the controller is to run on a host over SSH. */
export interface PlannedRuns extends WantedRuns {
  readonly of: PolicyOnHost;
}

export interface Plan {
  readonly runs: readonly PlannedRuns[];
  /** States of policies on the records of the hosts that have such policies. */
  readonly reported: ReadonlyMap<string, Readonly<Record<string, string>>>;
}

const NOTHING: Plan = { runs: [], reported: new Map() };

/** Finds the policies of a tenant that are deployed to hosts over SSH and that can run there. */
export async function planOf(tenant: string, { store, hosts }: PlanParts): Promise<Plan> {
  const lists = [...(await store.assignments(tenant))].filter(([, { value }]) => value && value.policies.length > 0);
  if (lists.length === 0) return NOTHING;
  const definitions = new Map(
    (await store.definitions(tenant)).flatMap((one) => (one.value ? [[one.value.spec.name, one] as const] : [])),
  );
  const reported = await hosts.all(tenant);
  const runs = lists.flatMap(([host, { value }]) =>
    value && reported.has(host) ? runsOn({ tenant, host }, value, definitions) : [],
  );
  return { runs, reported };
}

function runsOn(
  at: Pick<PolicyOnHost, "tenant" | "host">,
  { policies, confs = {} }: StoredAssignment,
  definitions: ReadonlyMap<string, Versioned<StoredDefinition>>,
): readonly PlannedRuns[] {
  return policies.flatMap((policy) => {
    const definition = definitions.get(policy);
    const spec = definition?.value?.spec;
    if (!definition || !spec || Object.hasOwn(confs, policy) || !isRunnable(spec)) return [];
    return [{ of: { ...at, policy }, spec, revision: definition.revision }];
  });
}

function isRunnable(spec: StoredDefinition["spec"]): spec is CommandPolicySpec {
  return spec.kind === "command" && unableOverSsh(spec) === undefined;
}
