import type { Area } from "../../area.ts";
import { depotClasses } from "./classes.ts";
import type { DeploymentService } from "./deployment.ts";
import { depotHostObject } from "./host-objects.ts";
import { depotRoutes } from "./routes.ts";
import type { DepotService } from "./service.ts";

export interface DepotParts {
  readonly depots: DepotService;
  readonly deployments: DeploymentService;
}

export function depotsArea({ depots, deployments }: DepotParts): Area {
  return {
    name: "depots",
    endpoints: depotRoutes(depots, deployments),
    hostObjects: [depotHostObject({ depots, deployments })],
    classes: depotClasses(depots),
    maintain: (tenant) => deployments.maintain(tenant),
  };
}
