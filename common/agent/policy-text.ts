import type { PolicySpec } from "../api/policies.ts";
import type { RunMember } from "../api/policy-runs.ts";
import { AppError } from "../errors.ts";

/**
 * The form in which agents get policies. The kind of a command policy names the members that say how its command is run,
 * such as `command with timeout, user`. An agent that does not know one of them refuses the policy by its kind: it must
 * not run without a limit, or as root, what was given one.
 */
const WITH = "command with ";
/** All members, as a table: the schemas of members are not loaded by agents. */
const MEMBERS: Readonly<Record<RunMember, true>> = {
  ...{ timeout: true, overlap: true, outputlimit: true, backoff: true, user: true, environment: true },
  ...{ memorylimit: true, cpulimit: true, nice: true },
};
const MEMBER_NAMES: readonly string[] = Object.keys(MEMBERS);

/** The policy as JSON for agents. */
export function policyText(spec: PolicySpec): string {
  const given: Partial<Record<string, unknown>> = { ...spec };
  const members = MEMBER_NAMES.filter((member) => (given[member] ?? "") !== "");
  return JSON.stringify(members.length === 0 ? spec : { ...spec, kind: WITH + members.join(", ") });
}

/** The policy of such a text. `AppError("unsupported")` if it has members that this agent does not know. */
export function policyOfText(text: string): unknown {
  const spec: unknown = JSON.parse(text);
  if (typeof spec !== "object" || spec === null || !("kind" in spec)) return spec;
  const { kind } = spec;
  if (typeof kind !== "string" || !kind.startsWith(WITH)) return spec;
  const unknown = kind
    .slice(WITH.length)
    .split(", ")
    .filter((member) => !MEMBER_NAMES.includes(member));
  if (unknown.length === 0) return { ...spec, kind: "command" };
  throw new AppError("unsupported", `This agent is too old for the members ${unknown.join(", ")} of the policy.`);
}
