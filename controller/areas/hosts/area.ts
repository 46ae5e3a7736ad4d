import type { Area } from "../../area.ts";
import type { SealedKind } from "../../secrets/index.ts";
import { hostClasses } from "./classes.ts";
import type { JoinAddress } from "./join-address.ts";
import { hostRoutes } from "./routes.ts";
import type { HostService } from "./service.ts";

export interface HostParts {
  readonly hosts: HostService;
  readonly sealed: readonly SealedKind[];
  /** Address at which a new host joins. Absent: answers omit the address. */
  readonly joinAddress?: (() => JoinAddress) | undefined;
}

export function hostsArea({ hosts, sealed, joinAddress }: HostParts): Area {
  return {
    name: "hosts",
    endpoints: hostRoutes(hosts, joinAddress),
    classes: hostClasses(hosts),
    sealed,
    levels: [
      {
        name: "odp_agent_sessions",
        help: "Agents connected to this controller.",
        value: () => hosts.agents.sessionCount,
      },
      {
        name: "odp_agent_entries_waiting_bytes",
        help: "What agents sent and is not stored yet.",
        value: () => hosts.agents.waitingBytes,
      },
    ],
    start: () => hosts.start(),
    maintain: (tenant) => hosts.maintain(tenant),
    leave: (tenant) => hosts.agents.leave(tenant),
    keysOf: (tenant) => hosts.agents.keysOf(tenant),
    close: () => hosts.close(),
  };
}
