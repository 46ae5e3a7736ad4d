import { policyEncoding } from "../../../../common/agent/policy-encoding.ts";
import { outputCutting, outputRecords } from "../../../../common/agent/output-records.ts";
import type { RawRecord } from "../../../../common/agent/raw-records.ts";
import type { CommandPolicySpec } from "../../../../common/api/policies.ts";
import { POLICY_PREVIEW_MS, POLICY_PREVIEW_OUTPUT_MAX_BYTES } from "../../../../common/limits.ts";
import { listed } from "../../../../common/text/listed.ts";
import type { Principal } from "../../permissions/index.ts";
import { readHost, type HostRead, type HostReadingParts } from "./host-reading.ts";
import type { PreviewRead, PreviewReading } from "./types.ts";

/**
 * Runs the command of a policy once, and cuts the beginning of its output into records as an agent does. A command that
 * has more output, or that runs for longer, is ended.
 */
export async function readCommand(
  principal: Principal,
  parts: HostReadingParts,
  { spec, host, count, signal }: PreviewReading<CommandPolicySpec>,
): Promise<PreviewRead> {
  const cutting = outputRecords(outputCutting(spec, policyEncoding(spec)));
  const records: RawRecord[] = [];
  let bytes = 0;
  const take = (data: Uint8Array): boolean => {
    bytes += data.length;
    records.push(...cutting.push(Buffer.from(data)));
    return records.length < count && bytes < POLICY_PREVIEW_OUTPUT_MAX_BYTES;
  };
  const { command: line, ctype, depotname } = spec;
  const environment = { ...spec.environment, ODP_POLICY: spec.name };
  const user = spec.user ? { user: spec.user } : {};
  const depot: { readonly depot?: string } = ctype === 0 && depotname ? { depot: depotname } : {};
  const command = { kind: "exec", line, environment, ...user, ...depot } as const;
  const read = await readHost(principal, parts, { host, command, signal, take });
  // The end of an output that was not read whole is not known to be a record.
  if (read.state === "ended") records.push(...cutting.end());
  const isFull = bytes >= POLICY_PREVIEW_OUTPUT_MAX_BYTES;
  return {
    ...read,
    source: "command",
    records: records
      .slice(0, count)
      .map((record) => ({ text: Buffer.from(record.bytes).toString("utf8"), groups: {} })),
    warnings: [
      ...(depot.depot ? [versionOf(depot.depot)] : []),
      ...ownFolder(spec),
      ...unlimited(spec),
      ...ending(spec, read, isFull),
    ],
  };
}

/** A host finds a depot by its name. */
function versionOf(depot: string): string {
  return `It ran in the version of the depot ${depot} that is deployed to the host, which may be another one.`;
}

function ownFolder({ command }: CommandPolicySpec): readonly string[] {
  const [named] = /ODP_POLICY_(?:FOLDER|CONF)/.exec(command) ?? [];
  return named === undefined ? [] : [`${named} is not set in a preview: only an agent has the folder of the policy.`];
}

function unlimited(spec: CommandPolicySpec): readonly string[] {
  const named = (["memorylimit", "cpulimit", "nice"] as const).filter((member) => spec[member] !== undefined);
  return named.length === 0 ? [] : [`A preview runs the command without ${listed(named)}.`];
}

function ending(spec: CommandPolicySpec, { state, code }: HostRead, isFull: boolean): readonly string[] {
  if (isFull) return [`Only the first ${POLICY_PREVIEW_OUTPUT_MAX_BYTES} bytes of the output were read.`];
  if (state === "ended" && code !== 0) return [`The command ended with code ${code}.`];
  if (state !== "timeout") return [];
  const seconds = POLICY_PREVIEW_MS / 1_000;
  const isWhole = spec.split !== true && spec.isdaemon !== true;
  const rest = isWhole ? " Its output is one record at its end, so there is none." : "";
  return [`The command still ran after ${seconds} seconds and was ended.${rest}`];
}
