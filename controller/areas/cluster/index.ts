export { Membership } from "./membership.ts";
export { clusterRoutes } from "./routes.ts";
export { ClusterService } from "./service.ts";
export type * from "./types.ts";
