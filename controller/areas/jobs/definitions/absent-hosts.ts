import { isExpression } from "../../../../common/targets/index.ts";
import type { Hosts, HostTargets } from "../../hosts/index.ts";
import { allows, type Principal } from "../../permissions/index.ts";
import type { StoredJob } from "../store.ts";
import { unknownHosts } from "./unknown-hosts.ts";

interface Sources {
  readonly targets: Pick<HostTargets, "hosts">;
  /** Absent: there is no warning of names. */
  readonly hosts: Pick<Hosts, "exists"> | undefined;
}

/**
 * One sentence for each expression of the job that matches no host now, and one for all names of hosts that do not
 * exist. Empty for a principal that may not read hosts.
 */
export async function absentHosts(
  { targets, hosts }: Sources,
  principal: Principal,
  { host }: Pick<StoredJob, "host">,
): Promise<readonly string[]> {
  if (host.length === 0 || !allows(principal, "hosts:read")) return [];
  const names = host.filter((entry) => !isExpression(entry));
  const { warnings } = await targets.hosts(principal, host);
  return [...warnings, ...(await unknownHosts(hosts, principal, names))];
}
