export type * from "./types.ts";
export { registerJobClasses } from "./classes.ts";
export { jobRoutes } from "./routes.ts";
export { JobRuns } from "./runs.ts";
export { JobService } from "./service.ts";
