import type { Area } from "../../area.ts";
import type { Query } from "../query/index.ts";
import { jobClasses } from "./classes.ts";
import type { JobContexts } from "./contexts.ts";
import type { JobGroups } from "./groups.ts";
import { jobHostObject } from "./host-objects.ts";
import type { JobScheduler } from "./scheduler.ts";
import { contextRoutes, groupRoutes, jobRoutes, jobSockets, type JobRouteDependencies } from "./routes.ts";

export function jobsArea(
  parts: JobRouteDependencies & {
    readonly contexts: JobContexts;
    readonly groups: JobGroups;
    readonly scheduler: JobScheduler;
    readonly query: Pick<Query, "rows">;
  },
): Area {
  const { jobs, runs, contexts, groups, scheduler } = parts;
  return {
    name: "jobs",
    endpoints: [...jobRoutes(parts), ...contextRoutes(contexts), ...groupRoutes(groups)],
    sockets: jobSockets(parts),
    hostObjects: [jobHostObject(parts)],
    classes: jobClasses(jobs),
    start: () => scheduler.start(),
    stop: () => scheduler.stop(),
    maintain: (tenant) => runs.maintain(tenant),
    close: () => runs.close(),
  };
}
