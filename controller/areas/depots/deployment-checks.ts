import { mapLimited } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import { DEPLOY_PARALLEL_HOSTS } from "../../../common/limits.ts";
import type { Hosts } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { DeploymentAction } from "./deployment-records.ts";
import type { HostWork } from "./deployment-requests.ts";
import type { Depots } from "./types.ts";

interface Dependencies {
  readonly depots: Pick<Depots, "isStored" | "users">;
  readonly hosts: Pick<Hosts, "depotsOn">;
}

interface Checked {
  readonly action: DeploymentAction;
  /** True: versions that leave the hosts may be in use there. */
  readonly force?: boolean | undefined;
}

/** Checks before a deployment that ask stores and other areas. */
export class DeploymentChecks {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /**
   * `AppError("not_found")` for a depot to be removed that is neither stored nor on one of the hosts, `conflict` if a
   * version that leaves the hosts is in use there, unless `force` is true. Actions that place nothing are not checked.
   */
  async require(
    principal: Principal,
    work: readonly Pick<HostWork, "host" | "depot" | "version">[],
    { action, force = false }: Checked,
  ): Promise<void> {
    if (action !== "deploy" && action !== "undeploy") return;
    const hosts = [...new Set(work.map(({ host }) => host))];
    for (const [name, versions] of versionsByDepot(work)) {
      if (action === "undeploy") await this.#requireKnown(principal, name, hosts);
      // Versions of one depot replace each other, so the last one stays.
      const leaves = (other: string): boolean =>
        action === "deploy" ? other !== versions.at(-1) : versions.includes(other);
      if (!force) await this.#with.depots.users.refuseDeparture({ principal, name, hosts, leaves });
    }
  }

  async #requireKnown(principal: Principal, name: string, hosts: readonly string[]): Promise<void> {
    if (await this.#with.depots.isStored(principal, name)) return;
    const onHosts = await mapLimited(hosts, DEPLOY_PARALLEL_HOSTS, (host) =>
      this.#with.hosts.depotsOn(principal, host),
    );
    if (!onHosts.some((names) => names.includes(name)))
      throw new AppError("not_found", `There is no depot ${name}, and none of these hosts has it.`);
  }
}

/** Versions of each depot, in the order of the work. */
function versionsByDepot(work: readonly Pick<HostWork, "depot" | "version">[]): ReadonlyMap<string, readonly string[]> {
  const versions = new Map<string, string[]>();
  for (const { depot, version } of work) {
    const known = versions.get(depot);
    if (known) known.push(version);
    else versions.set(depot, [version]);
  }
  return versions;
}
