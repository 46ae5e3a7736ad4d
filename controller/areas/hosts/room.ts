import { AppError } from "../../../common/errors.ts";
import type { Principal } from "../permissions/index.ts";
import type { HostRecords } from "./records.ts";

/** Limits on the number of a tenant's hosts; `Infinity` means no limit. */
export interface HostLimits {
  /** Maximum number of enrolled hosts, i.e. those with an agent. */
  readonly agents: number;
  /** Maximum number of hosts on record, with or without an agent. */
  readonly servers: number;
  /** Limit on enrolled hosts by the tenant's quota. Absent: the tenant has no quota. */
  readonly agentQuota?: number;
}

/** Maximum number of hosts with an agent, and the limit that sets it. */
interface AgentRoom {
  readonly most: number;
  readonly limit: FullOf;
}

type FullOf = "agent" | "server" | "agent quota";

export interface HostRoomDependencies {
  /** Throws an `AppError` if the tenant may have no more hosts. */
  readonly limits: (tenant: string) => Promise<HostLimits>;
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
  readonly records: Pick<HostRecords, "find" | "list">;
}

/** Checks if a tenant may have one more host. Existing hosts are never affected. */
export class HostRoom {
  readonly #with: HostRoomDependencies;

  constructor(dependencies: HostRoomDependencies) {
    this.#with = dependencies;
  }

  /** Number of hosts that may be enrolled: the lower of the licence limit and the quota. */
  async agents(tenant: string): Promise<AgentRoom> {
    const { agents, agentQuota = Infinity } = await this.#with.limits(tenant);
    return agentQuota < agents ? { most: agentQuota, limit: "agent quota" } : { most: agents, limit: "agent" };
  }

  /** Throws for a host not on record if no more are allowed. Hosts created at the same time may exceed the limit. */
  async requireServer(tenant: string, host: string): Promise<void> {
    const { limits, actAs, records } = this.#with;
    const principal = await actAs(tenant, "");
    if ((await records.find(principal, host)) !== undefined) return;
    const { servers } = await limits(tenant);
    if (servers === Infinity) return;
    let count = 0;
    for await (const page of records.list(principal, {}))
      if ((count += page.length) >= servers) throw full("server", servers);
    if (count >= servers) throw full("server", servers);
  }
}

export function full(limit: FullOf, most: number): AppError {
  const what = limit === "server" ? "hosts" : "hosts with an agent";
  const may = `The tenant may have ${most} ${what}, and has them`;
  if (limit !== "agent quota")
    return new AppError("too_large", `${may}: its licence ends there.`, { details: { limit: `licence.${limit}` } });
  return new AppError("too_large", `${may}: an administrator of the first tenant can raise its config.max_agents.`, {
    details: { limit: "max_agents", max: most },
  });
}
