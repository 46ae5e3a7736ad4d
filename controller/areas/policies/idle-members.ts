import {
  TIME_ZONE,
  type CommandPolicySpec,
  type LogPolicySpec,
  type PolicySpec,
} from "../../../common/api/policies.ts";
import { nearestName } from "../../../common/text/nearest.ts";

/** Attributes that have an effect, by kind of policy. Clients may keep attributes of their own. */
const EFFECTIVE: Readonly<Record<PolicySpec["kind"], readonly string[]>> = {
  command: [TIME_ZONE, "encoding"],
  log: [TIME_ZONE, "encoding", "heading"],
};

/** Units of a fixed length. Months and years are longer than the longest pause. */
const UNIT_S: Readonly<Record<CommandPolicySpec["unit"], number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  month: 28 * 86_400,
  year: 365 * 86_400,
};

/** One sentence for each member of the policy that has no effect but seems to be meant to have one. */
export function idleMembers(spec: PolicySpec): readonly string[] {
  const ofKind =
    spec.kind === "command"
      ? [...idleDepot(spec), ...idleDelimiter(spec), ...idleRuns(spec), ...idleBackoff(spec)]
      : idleTranslation(spec);
  return [...idleAttributes(spec), ...idleEnd(spec), ...ofKind];
}

function idleEnd({ delimiter, delimitereol }: PolicySpec): readonly string[] {
  if (!delimitereol || delimiter) return [];
  return ["delimitereol: without effect without delimiter, as a line feed always ends a record."];
}

function idleDelimiter({ split, isdaemon, delimiter }: CommandPolicySpec): readonly string[] {
  if (split || isdaemon || !delimiter) return [];
  return ["delimiter: without effect without split, as the whole output of a run is one record."];
}

/** A daemon has no runs that are due and end. */
function idleRuns(spec: CommandPolicySpec): readonly string[] {
  const members = (["timeout", "overlap", "outputlimit"] as const).filter((member) => spec[member]);
  if (!spec.isdaemon || members.length === 0) return [];
  return [`${members.join(", ")}: without effect with isdaemon, as a daemon has no runs that are due and end.`];
}

function idleBackoff({ isdaemon, backoff, interval, unit }: CommandPolicySpec): readonly string[] {
  const intervalS = interval * UNIT_S[unit];
  if (isdaemon || backoff === undefined || backoff > intervalS) return [];
  return [`backoff: without effect, as a pause of ${backoff} seconds skips no run of an interval of ${intervalS}.`];
}

function idleTranslation({ priority = [], translation = {} }: LogPolicySpec): readonly string[] {
  const idle = Object.keys(translation).filter((group) => !priority.includes(group));
  if (idle.length === 0) return [];
  return [`translation of ${idle.join(", ")}: without effect, as priority does not name the group.`];
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

function idleDepot(spec: CommandPolicySpec): readonly string[] {
  if (spec.ctype === 0) return [];
  const members = (["depotname", "depotversion", "depotcommand"] as const).filter((member) => spec[member]);
  if (members.length === 0) return [];
  return [`${members.join(", ")}: without effect with ctype 1, which runs a plain command.`];
}
