import type { PolicySpec } from "../../../../common/api/policies.ts";

/** Variables that name files in the folder in which an agent keeps a policy. */
const OF_AGENT = /\bODP_POLICY_(?:FOLDER|CONF)\b/;

export const CONF_NEEDS_AGENT =
  "The policy has a conf on this host, which only an agent stores, and this host has none.";

/** The reason why the policy cannot run over SSH, on any host. Undefined: it can. */
export function unableOverSsh(spec: PolicySpec): string | undefined {
  if (spec.kind === "log") return "A log is followed by an agent, and this host has none.";
  if (spec.isdaemon) return "A daemon is kept running by an agent, and this host has none.";
  const [variable] = OF_AGENT.exec(spec.command) ?? [];
  if (variable === undefined) return undefined;
  return `The command needs ${variable}, which only an agent sets, and this host has none.`;
}
