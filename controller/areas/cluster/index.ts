export { clusterRoutes } from "./routes.ts";
export { ClusterService } from "./service.ts";
