export type * from "./types.ts";
export { DEPLOYMENT_PATH, DEPOT_PATH, registerDepotClasses } from "./classes.ts";
export { DeploymentService, type DeploymentRequest } from "./deployment.ts";
export { depotRoutes } from "./routes.ts";
export { DepotService } from "./service.ts";
