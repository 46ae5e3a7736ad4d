import type { Area } from "../../area.ts";
import type { SealedKind } from "../../secrets/index.ts";
import type { Query } from "../query/index.ts";
import { jobClasses, jobGroupClass } from "./classes.ts";
import type { JobContexts } from "./context/contexts.ts";
import type { JobGroups } from "./groups/groups.ts";
import { jobHostObject } from "./host-objects.ts";
import type { JobScheduler } from "./schedule/scheduler.ts";
import type { RunRetention } from "./history/retention.ts";
import type { RunAges } from "./history/ages.ts";
import { contextRoutes, groupRoutes, jobRoutes, jobSockets, type JobRouteDependencies } from "./routes.ts";

export function jobsArea(
  parts: JobRouteDependencies & {
    readonly contexts: JobContexts;
    readonly groups: JobGroups;
    readonly scheduler: JobScheduler;
    readonly retention: RunRetention;
    readonly ages: RunAges;
    readonly sealed: readonly SealedKind[];
    readonly query: Pick<Query, "rows">;
  },
): Area {
  const { jobs, runs, contexts, groups, scheduler, retention, ages, sealed } = parts;
  return {
    name: "jobs",
    endpoints: [...jobRoutes(parts), ...contextRoutes(contexts), ...groupRoutes(groups)],
    sockets: jobSockets(parts),
    hostObjects: [jobHostObject(parts)],
    classes: [...jobClasses(jobs), jobGroupClass(groups)],
    sealed,
    start: () => scheduler.start(),
    stop: () => scheduler.stop(),
    maintain: async (tenant) => {
      await runs.maintain(tenant);
      await retention.sweep(tenant);
      await ages.sweep(tenant);
    },
    close: () => runs.close(),
  };
}
