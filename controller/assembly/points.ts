import type { AuditEntry } from "../areas/audit/index.ts";
import type { EntrySink, Peers } from "../areas/hosts/index.ts";
import type { HostCounts } from "../areas/licences/index.ts";
import type { Growth, ObjectTriggers } from "../areas/objects/index.ts";
import type { PolicyService } from "../areas/policies/index.ts";
import type { ProxiedHosts } from "../areas/jobs/index.ts";
import type { AuthoredWork, BegunWork, DirectoryReader, UserService } from "../areas/users/index.ts";
import { AreaList } from "./area-list.ts";
import { ExtensionPoint, type Sides } from "./extension.ts";

/** Sizes of a tenant's data, summed from the objects themselves. */
export interface TenantSizes {
  of(tenant: string): AsyncIterable<Growth>;
}

export interface AuditRecorder {
  record(entry: AuditEntry): Promise<void>;
}

/** Services that give commands to hosts. */
export interface CommandOwners {
  /** True if one of these services gave the command to the host. */
  gave(tenant: string, host: string, commandId: string): Promise<boolean>;
}

/** Takes the entries of agents. `forget` drops what is known of a host's agent. */
export interface AgentEntries extends EntrySink {
  forget(tenant: string, host: string): Promise<void>;
}

/**
 * The extension points of a controller: every service that is needed before it is made. Two services that need each
 * other meet here and nowhere else.
 */
export function openPoints() {
  const all: ExtensionPoint<object>[] = [];
  const point = <T extends object>(sides: Sides): ExtensionPoint<T> => {
    const opened = new ExtensionPoint<T>(sides);
    all.push(opened as ExtensionPoint<object>);
    return opened;
  };
  return {
    areas: new AreaList(),
    sizes: point<TenantSizes>({ name: "sizes of tenants", neededBy: "tenant use", filledBy: "objects" }),
    audit: point<AuditRecorder>({ name: "audit of quotas", neededBy: "tenant use", filledBy: "audit" }),
    triggers: point<ObjectTriggers>({ name: "triggers of writes", neededBy: "objects", filledBy: "triggers" }),
    directory: point<DirectoryReader>({ name: "directory of users", neededBy: "groups", filledBy: "users" }),
    leftWork: point<Pick<UserService, "leftByGroup">>({ name: "work of users", neededBy: "groups", filledBy: "users" }),
    authoredJobs: point<AuthoredWork>({ name: "jobs by author", neededBy: "users", filledBy: "jobs" }),
    authoredTriggers: point<AuthoredWork>({ name: "triggers by author", neededBy: "users", filledBy: "triggers" }),
    authoredRules: point<AuthoredWork>({ name: "rules by author", neededBy: "users", filledBy: "rules" }),
    begunRuns: point<BegunWork>({ name: "job runs of users", neededBy: "users", filledBy: "job runs" }),
    begunBatches: point<BegunWork>({ name: "batches of users", neededBy: "users", filledBy: "query" }),
    begunImports: point<BegunWork>({ name: "imports of users", neededBy: "users", filledBy: "imports" }),
    begunDeployments: point<BegunWork>({ name: "deployments of users", neededBy: "users", filledBy: "deployments" }),
    hostCounts: point<HostCounts>({ name: "counts of hosts", neededBy: "licences", filledBy: "hosts" }),
    policies: point<Pick<PolicyService, "needing" | "desired" | "targets">>({
      name: "policies of rules and hosts",
      neededBy: "rules and hosts",
      filledBy: "policies",
    }),
    entries: point<AgentEntries>({ name: "entries of agents", neededBy: "hosts", filledBy: "ingest" }),
    peers: point<Peers>({ name: "calls to other controllers", neededBy: "hosts", filledBy: "peer links" }),
    commands: point<CommandOwners>({ name: "owners of commands", neededBy: "hosts", filledBy: "job runs" }),
    proxied: point<Pick<ProxiedHosts, "leads">>({
      name: "ways of hosts",
      neededBy: "hosts",
      filledBy: "proxied hosts",
    }),
    /** Throws if a point is not filled. */
    requireFilled(): void {
      for (const one of all) one.requireFilled();
    },
  };
}
