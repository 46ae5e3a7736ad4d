export { jobsArea } from "./area.ts";
export type * from "./types.ts";
export { jobClasses } from "./classes.ts";
export { JobContexts } from "./contexts.ts";
export { JobGroups } from "./groups.ts";
export { OutputFollowing } from "./following.ts";
export { jobRoutes, jobSockets } from "./routes.ts";
export { JobRuns } from "./runs.ts";
export { JobService } from "./service.ts";
