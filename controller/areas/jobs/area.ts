import type { Area } from "../../area.ts";
import { jobClasses } from "./classes.ts";
import type { JobContexts } from "./contexts.ts";
import type { JobGroups } from "./groups.ts";
import { contextRoutes, groupRoutes, jobRoutes, jobSockets, type JobRouteDependencies } from "./routes.ts";

export function jobsArea(
  parts: JobRouteDependencies & { readonly contexts: JobContexts; readonly groups: JobGroups },
): Area {
  const { jobs, runs, contexts, groups } = parts;
  return {
    name: "jobs",
    endpoints: [...jobRoutes(parts), ...contextRoutes(contexts), ...groupRoutes(groups)],
    sockets: jobSockets(parts),
    classes: jobClasses(jobs),
    maintain: (tenant) => runs.maintain(tenant),
    close: () => runs.close(),
  };
}
