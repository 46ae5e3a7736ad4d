import type { CommandPolicyInput, LogPolicyInput } from "../../../common/api/policies.ts";
import type { PolicyInput } from "./types.ts";

/** Separates the input of a client into the task (`spec`) and its targets (`hosts` and `tags`). */
export function policyInput(kind: "command", input: CommandPolicyInput): PolicyInput;
export function policyInput(kind: "log", input: LogPolicyInput): PolicyInput;
export function policyInput(
  kind: "command" | "log",
  { hosts, tags, ...spec }: CommandPolicyInput | LogPolicyInput,
): PolicyInput {
  return {
    spec: { kind, ...spec } as PolicyInput["spec"],
    ...(hosts && { hosts: hosts.filter((host) => host !== "") }),
    ...(tags && { tags }),
  };
}
