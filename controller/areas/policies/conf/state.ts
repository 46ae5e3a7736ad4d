import type { PolicyConf } from "../../../../common/api/policies.ts";
import type { AgentState } from "../../hosts/index.ts";

interface Situation {
  /** True if the policy is deployed to the host. */
  readonly isAssigned: boolean;
  /** SHA-256 of the wanted conf, and of the one that the agent reported. Empty: none. */
  readonly digest: string;
  readonly placed: string;
  /** Absent: there is no such host. */
  readonly agent: AgentState | undefined;
}

/** The state of a conf on a host, with the reason why it is not `ok`. */
export function stateOf({ isAssigned, digest, placed, agent }: Situation): Pick<PolicyConf, "state" | "message"> {
  if (!agent) return { state: "failed", message: "There is no such host." };
  if (digest !== "" && !isAssigned)
    return { state: "unassigned", message: "The policy is not deployed to this host, which gets the conf with it." };
  if (digest === placed) return { state: "ok", message: "" };
  return { state: "waiting", message: waitingFor(agent) };
}

function waitingFor({ hasAgent, isOnline }: AgentState): string {
  if (!hasAgent) return "This host has no agent. Policies and their confs are for hosts with an agent.";
  return isOnline ? "Its agent has not confirmed it yet." : "Its agent is not connected.";
}
