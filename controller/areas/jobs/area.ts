import type { Area } from "../../area.ts";
import { jobClasses } from "./classes.ts";
import { jobRoutes, jobSockets, type JobRouteDependencies } from "./routes.ts";

export function jobsArea(parts: JobRouteDependencies): Area {
  const { jobs, runs } = parts;
  return {
    name: "jobs",
    endpoints: jobRoutes(parts),
    sockets: jobSockets(parts),
    classes: jobClasses(jobs),
    maintain: (tenant) => runs.maintain(tenant),
    close: () => runs.close(),
  };
}
