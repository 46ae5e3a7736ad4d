import { AppError } from "../../../common/errors.ts";
import type { Principal } from "../permissions/index.ts";
import type { HostRecords } from "./records.ts";

/** How many hosts a tenant may have; `Infinity` is no limit. */
export interface HostLimits {
  /** With an agent: enrolled ones. */
  readonly agents: number;
  /** On record, with or without an agent. */
  readonly servers: number;
}

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

  /** How many hosts may be enrolled. */
  async agents(tenant: string): Promise<number> {
    return (await this.#with.limits(tenant)).agents;
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

export function full(limit: "agent" | "server", most: number): AppError {
  const what = limit === "agent" ? "hosts with an agent" : "hosts";
  return new AppError("too_large", `The tenant may have ${most} ${what}, and has them: its licence ends there.`, {
    details: { limit: `licence.${limit}` },
  });
}
