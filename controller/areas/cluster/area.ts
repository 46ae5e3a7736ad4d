import type { Area } from "../../area.ts";
import type { Membership } from "./membership.ts";
import { clusterRoutes, scrubRoutes } from "./routes.ts";
import type { ScrubService } from "./scrub.ts";
import type { ClusterService } from "./service.ts";

export interface ClusterParts {
  readonly cluster: ClusterService;
  readonly membership: Membership;
  readonly scrubs: ScrubService;
}

export function clusterArea({ cluster, membership, scrubs }: ClusterParts): Area {
  return {
    name: "cluster",
    endpoints: [...clusterRoutes(cluster), ...scrubRoutes(scrubs)],
    levels: [
      {
        name: "odp_scrub_age_seconds",
        help: "Since the tenant that waits longest was scrubbed to the end, or made.",
        value: () => Math.floor(scrubs.longestAgeMs / 1_000),
      },
    ],
    maintain: (tenant) => scrubs.maintain(tenant),
    leave: (tenant) => scrubs.leave(tenant),
    stop: () => scrubs.close(),
    close: () => membership.close(),
  };
}
