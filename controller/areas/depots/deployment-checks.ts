import { mapLimited } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import { DEPLOY_PARALLEL_HOSTS } from "../../../common/limits.ts";
import type { Hosts } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { Depots } from "./types.ts";

interface Dependencies {
  readonly depots: Pick<Depots, "isStored" | "users">;
  readonly hosts: Pick<Hosts, "depotsOn">;
}

interface Request {
  readonly hosts: readonly string[];
  readonly depots: readonly string[];
  readonly force?: boolean;
}

interface DepotCommand {
  readonly kind: "deploy" | "undeploy";
  readonly name: string;
  readonly version: string;
}

/** Checks before a deployment that ask stores and other areas. */
export class DeploymentChecks {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** `AppError("not_found")` for a depot that is neither stored nor on one of the hosts. */
  async requireKnown(principal: Principal, { depots, hosts }: Request): Promise<void> {
    for (const name of new Set(depots)) {
      if (await this.#with.depots.isStored(principal, name)) continue;
      const onHosts = await mapLimited([...new Set(hosts)], DEPLOY_PARALLEL_HOSTS, (host) =>
        this.#with.hosts.depotsOn(principal, host),
      );
      if (!onHosts.some((names) => names.includes(name)))
        throw new AppError("not_found", `There is no depot ${name}, and none of these hosts has it.`);
    }
  }

  /** `AppError("conflict")` if versions that leave the hosts are in use there. Does nothing for a forced request. */
  async requireUnused(
    principal: Principal,
    { hosts, force = false }: Request,
    commands: readonly DepotCommand[],
  ): Promise<void> {
    if (force) return;
    for (const { kind, name, version } of commands) {
      const leaves = (other: string): boolean => (kind === "deploy" ? other !== version : other === version);
      await this.#with.depots.users.refuseDeparture({ principal, name, hosts, leaves });
    }
  }
}
