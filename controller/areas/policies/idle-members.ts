import { TIME_ZONE, type PolicySpec } from "../../../common/api/policies.ts";
import { nearestName } from "../../../common/text/nearest.ts";

/** Attributes that have an effect, by kind of policy. Clients may keep attributes of their own. */
const EFFECTIVE: Readonly<Record<PolicySpec["kind"], readonly string[]>> = {
  command: [TIME_ZONE, "encoding"],
  log: [TIME_ZONE, "encoding", "heading"],
};

/** One sentence for each member of the policy that has no effect but seems to be meant to have one. */
export function idleMembers(spec: PolicySpec): readonly string[] {
  return [...idleAttributes(spec), ...(spec.kind === "command" ? idleDepot(spec) : [])];
}

function idleAttributes({ kind, attrs = {} }: PolicySpec): readonly string[] {
  const effective = EFFECTIVE[kind];
  return Object.keys(attrs).flatMap((name) => {
    if (effective.includes(name)) return [];
    if (EFFECTIVE.log.includes(name)) return [`The attribute ${name} has no effect in a ${kind} policy.`];
    const nearest = nearestName(name, effective);
    return nearest === undefined ? [] : [`The attribute ${name} has no effect; did you mean ${nearest}?`];
  });
}

function idleDepot(spec: Extract<PolicySpec, { kind: "command" }>): readonly string[] {
  if (spec.ctype === 0) return [];
  const members = (["depotname", "depotversion", "depotcommand"] as const).filter((member) => spec[member]);
  if (members.length === 0) return [];
  return [`${members.join(", ")}: without effect with ctype 1, which runs a plain command.`];
}
