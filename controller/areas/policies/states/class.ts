import type { Row } from "../../../../common/value.ts";
import { columns, type SystemClass } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";

/** Class with the state of each policy on each host, relative to the tenant's ospace. */
export const POLICY_STATE_PATH = "/system/policystate";

/** The states are computed when they are read. */
export function policyStateClass(states: { rows(principal: Principal): AsyncIterable<readonly Row[]> }): SystemClass {
  return {
    path: POLICY_STATE_PATH,
    columns: [
      ...columns("varchar", {
        policy: "Name of the policy on the host",
        host: "Host that is to run the policy, or that ran it last",
        state:
          "running, waiting, failed, away, unable (no agent, and over SSH not possible), leaving (not wanted any more) or removed (no host)",
      }),
      ...columns("boolean", { wanted: "True: the policy is deployed to the host" }),
      ...columns("text", { message: "Why the policy does not run there; empty: it runs" }),
      ...columns("double", {
        cpu_usedpercent:
          "Processor time of the processes of a daemon, in percent of one processor; empty: no daemon, or not known",
      }),
      ...columns("bigint", {
        memory_bytes: "Memory in use by the processes of a daemon, in bytes; empty: no daemon, or not known",
      }),
      ...columns("timestamp", { since: "Time since which it is in that state, as far as it is known" }),
    ],
    keys: ["policy", "host"],
    guard: { reading: { permission: "policies:read" } },
    provide: (principal) => states.rows(principal),
  };
}
