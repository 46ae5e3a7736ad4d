import { mapLimited } from "../../../common/concurrency.ts";
import { DEPLOY_PARALLEL_HOSTS } from "../../../common/limits.ts";
import { fileName } from "../../../common/paths.ts";
import type { HostTargets } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
import {
  checkedPairs,
  placeOf,
  resolvedRequest,
  workOf,
  type DeploymentRequest,
  type HostWork,
} from "./deployment-requests.ts";
import type { Depots } from "./types.ts";
import { depotVersion } from "./version.ts";

interface Dependencies {
  readonly depots: Pick<Depots, "toDeploy">;
  readonly targets: Pick<HostTargets, "hosts">;
}

/** Makes commands for hosts of the requests of users. */
export class DeploymentWork {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** `AppError("not_found")` for a depot to deploy that the principal does not see. */
  async of(
    principal: Principal,
    request: DeploymentRequest,
    action: "deploy" | "undeploy",
  ): Promise<readonly HostWork[]> {
    const commands = action === "deploy" ? await this.#deploying(principal, request) : undeploying(request);
    return workOf(await resolvedRequest(this.#with.targets, principal, request), commands);
  }

  async #deploying(principal: Principal, request: DeploymentRequest) {
    const place = placeOf(request);
    return mapLimited(checkedPairs(request), DEPLOY_PARALLEL_HOSTS, async (pair) => {
      const depot = await this.#with.depots.toDeploy(principal, pair.depot, pair.version);
      return { kind: "deploy" as const, ...depot, ...place };
    });
  }
}

function undeploying(request: DeploymentRequest) {
  const place = placeOf(request);
  return checkedPairs(request).map(({ depot, version }) => ({
    kind: "undeploy" as const,
    name: fileName(depot),
    version: depotVersion(version),
    ...place,
  }));
}
