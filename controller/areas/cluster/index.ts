export { clusterArea } from "./area.ts";
export { byAge, Membership } from "./membership.ts";
export { RepairService } from "./repairs.ts";
export { RowCheckService } from "./row-checks.ts";
export { ScrubService } from "./scrub.ts";
export { ClusterService } from "./service.ts";
export type * from "./types.ts";
