import { listed } from "../../../../common/text/listed.ts";
import type { HostTargets } from "../../hosts/index.ts";
import { allows, type Principal } from "../../permissions/index.ts";
import type { StoredJob } from "../store.ts";

/**
 * One sentence for each expression of the job that matches no host now, and one for all hosts that do not exist now.
 * Empty for a principal that may not read hosts.
 */
export async function absentHosts(
  targets: Pick<HostTargets, "hosts" | "existing">,
  principal: Principal,
  { host }: Pick<StoredJob, "host">,
): Promise<readonly string[]> {
  if (host.length === 0 || !allows(principal, "hosts:read")) return [];
  const { named, warnings } = await targets.hosts(principal, host);
  const existing = await targets.existing(principal, named);
  const absent = named.filter((name) => !existing.has(name));
  return [...warnings, ...(absent.length === 0 ? [] : [`There is no host ${listed(absent)} now.`])];
}
