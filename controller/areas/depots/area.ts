import type { Area } from "../../area.ts";
import { depotClasses } from "./classes.ts";
import type { DeploymentService } from "./deployment.ts";
import { depotHostObject } from "./host-objects.ts";
import { depotRoutes } from "./routes.ts";
import type { DepotService } from "./service.ts";
import type { WaitingDeployments } from "./waiting/service.ts";

export interface DepotParts {
  readonly depots: DepotService;
  readonly deployments: DeploymentService;
  readonly waiting: WaitingDeployments;
}

export function depotsArea({ depots, deployments, waiting }: DepotParts): Area {
  return {
    name: "depots",
    endpoints: depotRoutes({ depots, deployments, waiting }),
    hostObjects: [depotHostObject({ depots, deployments })],
    classes: depotClasses(depots),
    async maintain(tenant) {
      await deployments.maintain(tenant);
      await waiting.maintain(tenant);
    },
    stop: () => waiting.stop(),
  };
}
