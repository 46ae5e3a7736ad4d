import { mapLimited } from "../../../../common/concurrency.ts";
import { JOB_HOST_LOOKUPS_AT_ONCE } from "../../../../common/limits.ts";
import { listed } from "../../../../common/text/listed.ts";
import type { Hosts } from "../../hosts/index.ts";
import { allows, type Principal } from "../../permissions/index.ts";

/**
 * One sentence about hosts that do not exist, or that the principal may not see. A job with them is stored, because a
 * host may be made later. Empty if the principal may not read hosts, or without `hosts`.
 */
export async function unknownHosts(
  hosts: Pick<Hosts, "exists"> | undefined,
  principal: Principal,
  names: readonly string[],
): Promise<readonly string[]> {
  if (hosts === undefined || !allows(principal, "hosts:read")) return [];
  const different = [...new Set(names)];
  const known = await mapLimited(different, JOB_HOST_LOOKUPS_AT_ONCE, (host) => hosts.exists(principal, host));
  const unknown = different.filter((_, at) => !known[at]);
  return unknown.length === 0 ? [] : [`There is no host ${listed(unknown)}: the job cannot run there.`];
}
