import type { Area } from "../../area.ts";
import { jobClasses } from "./classes.ts";
import type { JobContexts } from "./contexts.ts";
import { contextRoutes, jobRoutes, jobSockets, type JobRouteDependencies } from "./routes.ts";

export function jobsArea(parts: JobRouteDependencies & { readonly contexts: JobContexts }): Area {
  const { jobs, runs, contexts } = parts;
  return {
    name: "jobs",
    endpoints: [...jobRoutes(parts), ...contextRoutes(contexts)],
    sockets: jobSockets(parts),
    classes: jobClasses(jobs),
    maintain: (tenant) => runs.maintain(tenant),
    close: () => runs.close(),
  };
}
