export { depotsArea } from "./area.ts";
export type * from "./types.ts";
export { depotClasses } from "./classes.ts";
export { DeploymentService } from "./deployment.ts";
export { depotRoutes } from "./routes.ts";
export { DepotService } from "./service.ts";
export { DepotUsers } from "./users.ts";
export type * from "./users.ts";
