export type * from "./types.ts";
export { JOB_DEFINITION_PATH, JOB_RUN_PATH, registerJobClasses } from "./classes.ts";
export { jobRoutes, type JobRouteDependencies } from "./routes.ts";
export { JobRuns, type RunDependencies } from "./runs.ts";
export { JobService } from "./service.ts";
