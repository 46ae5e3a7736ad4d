import { AppError } from "../../../common/errors.ts";
import type { Principal } from "../permissions/index.ts";
import type { HostRecords } from "./records.ts";

/** How many hosts a tenant may have; `Infinity` is no limit. */
export interface HostLimits {
  /** With an agent: enrolled ones. */
  readonly agents: number;
  /** On record, with or without an agent. */
  readonly servers: number;
  /** Of `agents`, by the quota of the tenant; absent: it has none. */
  readonly agentQuota?: number;
}

/** What a tenant may have of hosts with an agent, and what says so. */
interface AgentRoom {
  readonly most: number;
  readonly limit: FullOf;
}

type FullOf = "agent" | "server" | "agent quota";

export interface HostRoomDependencies {
  /** Throws an `AppError` when the tenant may have no more hosts than it has. */
  readonly limits: (tenant: string) => Promise<HostLimits>;
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
  readonly records: Pick<HostRecords, "find" | "list">;
}

/** Whether a tenant may have one more host. What is there already is never touched. */
export class HostRoom {
  readonly #with: HostRoomDependencies;

  constructor(dependencies: HostRoomDependencies) {
    this.#with = dependencies;
  }

  /** How many hosts may be enrolled: by the licence or the quota, whichever allows fewer. */
  async agents(tenant: string): Promise<AgentRoom> {
    const { agents, agentQuota = Infinity } = await this.#with.limits(tenant);
    return agentQuota < agents ? { most: agentQuota, limit: "agent quota" } : { most: agents, limit: "agent" };
  }

  /**
   * Refuses a host that is not on record where no more may be. Hosts that are made at the same moment may be more.
   */
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
