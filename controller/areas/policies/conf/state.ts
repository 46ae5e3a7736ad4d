import type { PolicyConf } from "../../../../common/api/policies.ts";
import type { AgentState } from "../../hosts/index.ts";

interface Situation {
  /** True if the policy is deployed to the host. */
  readonly isAssigned: boolean;
  readonly policy: string;
  /** SHA-256 of the wanted conf. Empty: none. */
  readonly digest: string;
  /** Absent: there is no such host. */
  readonly agent: AgentState | undefined;
}

/** The state of a conf on a host, with the reason why it is not `ok`. */
export function stateOf({ isAssigned, policy, digest, agent }: Situation): Pick<PolicyConf, "state" | "message"> {
  if (!agent) return { state: "failed", message: "There is no such host." };
  if (digest !== "" && !isAssigned)
    return { state: "unassigned", message: "The policy is not deployed to this host, which gets the conf with it." };
  if (digest === reportedOf(agent.confs, policy)) return { state: "ok", message: "" };
  return { state: "waiting", message: waitingFor(agent, reportedOf(agent.policies, policy)) };
}

function waitingFor({ hasAgent, isOnline }: AgentState, policyState: string): string {
  if (!hasAgent) return "This host has no agent. Confs of policies are for hosts with an agent.";
  if (!isOnline) return "Its agent is not connected.";
  const problem = policyState.startsWith("failed") ? ` The policy is ${policyState}` : "";
  return `Its agent has not confirmed it yet.${problem}`;
}

/** The agent's report for the policy; empty if it reported nothing. A policy may be named like a member of all objects. */
function reportedOf(reports: Readonly<Record<string, string>>, policy: string): string {
  return Object.hasOwn(reports, policy) ? (reports[policy] ?? "") : "";
}
