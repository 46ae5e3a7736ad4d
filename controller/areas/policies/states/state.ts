import type { PolicyReport, ProcessUsage } from "../../hosts/index.ts";

/** The state of one policy on one host, with the reason why it does not run. */
export interface PolicyState {
  readonly state: "running" | "waiting" | "failed" | "away" | "unable" | "leaving" | "removed";
  /** Empty while it runs. */
  readonly message: string;
  /** Absent: not known. */
  readonly sinceMs?: number | undefined;
  /** Usage of a daemon that runs. Absent: not known. */
  readonly usage?: ProcessUsage | undefined;
}

/** The reports of agents: `failed` is followed by the reason. */
const FAILED = /^failed(?:: )?/;

/** A policy that is to run on a host. */
export interface WantedPolicy {
  readonly policy: string;
  /** The reason why the policy cannot run over SSH. Absent: it can. */
  readonly unable?: string | undefined;
}

const NO_WAY = "This host has no agent and no credentials for SSH. A policy runs by one of them.";

/** The state of a policy that is to run on the host. */
export function wantedState({ policy, unable }: WantedPolicy, host: PolicyReport): PolicyState {
  if (host.way === "none") return { state: "unable", message: NO_WAY };
  if (host.way === "ssh" && unable !== undefined) return { state: "unable", message: unable };
  if (host.way === "ssh") return stateOverSsh(policy, host);
  const reported = reportOf(policy, host);
  if (!host.isOnline) {
    const last = reported === undefined ? "" : ` It was last reported as ${reported}.`;
    return { state: "away", message: `The agent is not connected.${last}`, sinceMs: host.statusSinceMs };
  }
  const sinceMs = host.sinceMs[policy];
  if (reported === undefined)
    return { state: "waiting", message: "The agent has not reported the policy yet.", sinceMs };
  if (reported === "running") return { state: "running", message: "", sinceMs, usage: usageOf(policy, host) };
  if (FAILED.test(reported)) return { state: "failed", message: reported.replace(FAILED, ""), sinceMs };
  return { state: "waiting", message: "The agent has the policy and has not started it yet.", sinceMs };
}

/** The controller that runs the policies over SSH reports their states as an agent does. */
function stateOverSsh(policy: string, host: PolicyReport): PolicyState {
  const reported = reportOf(policy, host);
  const sinceMs = host.sinceMs[policy];
  if (reported === undefined)
    return { state: "waiting", message: "No controller has run the policy over SSH yet.", sinceMs };
  if (FAILED.test(reported)) return { state: "failed", message: reported.replace(FAILED, ""), sinceMs };
  return { state: "running", message: "", sinceMs };
}

/** The state of a policy that the host is not to run, but that its agent reported last. */
export function unwantedState(policy: string, host: PolicyReport): PolicyState {
  const sinceMs = host.sinceMs[policy];
  if (host.way !== "agent")
    return { state: "leaving", message: "The host is not to run the policy. No controller has ended it yet.", sinceMs };
  return {
    state: "leaving",
    message: host.isOnline
      ? "The host is not to run the policy. Its agent has not reported yet that it ended it."
      : "The host is not to run the policy. Its agent is not connected, and runs the policy until it is.",
    sinceMs,
  };
}

/** The state of a policy on a host of its list that has no record, or none that the reader sees. */
export const REMOVED: PolicyState = {
  state: "removed",
  message: "There is no such host. The policy runs there once a host of this name joins.",
};

function usageOf(policy: string, { usage }: PolicyReport): ProcessUsage | undefined {
  return Object.hasOwn(usage, policy) ? usage[policy] : undefined;
}

/** A policy may be named like a member of all objects. */
function reportOf(policy: string, { policies }: PolicyReport): string | undefined {
  return Object.hasOwn(policies, policy) ? policies[policy] : undefined;
}
