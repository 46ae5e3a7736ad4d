import type { Area } from "../../area.ts";
import type { Membership } from "./membership.ts";
import { clusterRoutes } from "./routes.ts";
import type { ClusterService } from "./service.ts";

export interface ClusterParts {
  readonly cluster: ClusterService;
  readonly membership: Membership;
}

export function clusterArea({ cluster, membership }: ClusterParts): Area {
  return { name: "cluster", endpoints: clusterRoutes(cluster), close: () => membership.close() };
}
