import {
  CommandPolicyInput,
  LogPolicyInput,
  type PolicyChange,
  type PolicySpec,
} from "../../../common/api/policies.ts";
import { AppError } from "../../../common/errors.ts";
import type { PolicyInput } from "./types.ts";

/** Separates the input of a client into the task (`spec`) and its targets (`hosts` and `tags`). */
export function policyInput(kind: "command", input: CommandPolicyInput): PolicyInput;
export function policyInput(kind: "log", input: LogPolicyInput): PolicyInput;
export function policyInput(kind: "command" | "log", input: CommandPolicyInput | LogPolicyInput): PolicyInput {
  return separated({ kind, ...input } as PolicySpec);
}

/** The policy after the change. `AppError("invalid")` for a member that its kind lacks. */
export function changedInput(spec: PolicySpec, change: Omit<PolicyChange, "name">): PolicyInput {
  const { properties } = spec.kind === "command" ? CommandPolicyInput : LogPolicyInput;
  const sent = Object.entries(change).filter(([, value]) => value !== undefined);
  const other = sent.find(([member]) => !Object.hasOwn(properties, member));
  if (other) throw new AppError("invalid", `The ${spec.kind} policy ${spec.name} has no member ${other[0]}.`);
  return separated({ ...spec, ...(Object.fromEntries(sent) as Partial<PolicySpec>) } as PolicySpec);
}

function separated({ hosts, tags, ...spec }: PolicySpec): PolicyInput {
  return {
    spec: spec as PolicySpec,
    ...(hosts && { hosts: hosts.filter((host) => host !== "") }),
    ...(tags && { tags }),
  };
}
