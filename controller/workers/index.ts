export { WorkerPool } from "./pool.ts";
export { serveTasks } from "./serve.ts";
export type { RunOptions, Workers } from "./types.ts";
