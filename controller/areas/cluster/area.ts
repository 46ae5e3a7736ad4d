import type { Area } from "../../area.ts";
import type { Membership } from "./membership.ts";
import type { RepairService } from "./repairs.ts";
import type { RowCheckService } from "./row-checks.ts";
import type { ObjectService } from "../objects/index.ts";
import { aheadRoutes, clusterRoutes, repairRoutes, scrubRoutes } from "./routes.ts";
import type { ScrubService } from "./scrub.ts";
import type { ClusterService } from "./service.ts";

export interface ClusterParts {
  readonly cluster: ClusterService;
  readonly membership: Membership;
  readonly scrubs: ScrubService;
  readonly repairs: RepairService;
  readonly rowChecks: RowCheckService;
  readonly objects: Pick<ObjectService, "ahead">;
}

export function clusterArea({ cluster, membership, scrubs, repairs, rowChecks, objects }: ClusterParts): Area {
  return {
    name: "cluster",
    endpoints: [
      ...clusterRoutes(cluster),
      ...scrubRoutes(scrubs, rowChecks),
      ...repairRoutes(repairs),
      ...aheadRoutes(objects),
    ],
    levels: [
      {
        name: "odp_scrub_age_seconds",
        help: "Since the tenant that waits longest was scrubbed to the end, or made.",
        value: () => Math.floor(scrubs.longestAgeMs / 1_000),
      },
      {
        name: "odp_repair_overdue_seconds",
        help: "For how long the table that waits longest for a repair of Cassandra has been due; 0 where none is.",
        value: () => Math.floor(repairs.overdueMs / 1_000),
      },
      {
        name: "odp_damaged_rows",
        help: "Rows that cannot be read, have a wrong checksum, or are missing, of all stores, as the row checks found.",
        value: () => rowChecks.damagedRows,
      },
      {
        name: "odp_row_check_age_seconds",
        help: "Since the store that waits longest was read to the end by the row check, or is waiting for that.",
        value: () => Math.floor(rowChecks.longestAgeMs / 1_000),
      },
    ],
    async maintain(tenant) {
      await scrubs.maintain(tenant);
      await repairs.maintain(tenant);
      await rowChecks.maintain(tenant);
    },
    leave(tenant) {
      scrubs.leave(tenant);
      repairs.leave(tenant);
      rowChecks.leave(tenant);
    },
    async stop() {
      await scrubs.close();
      await rowChecks.close();
    },
    close: () => membership.close(),
  };
}
