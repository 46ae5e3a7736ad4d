export { clusterArea } from "./area.ts";
export { Membership } from "./membership.ts";
export { ClusterService } from "./service.ts";
export type * from "./types.ts";
