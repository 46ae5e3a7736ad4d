export { CallEnd, type CallLine, type CallRequest, openCallLine } from "./calls.ts";
export { type PoolLimits, WorkerPool } from "./pool.ts";
export { lowerPriority, threadProcessorMs } from "./processor.ts";
export { serveTasks, threadData } from "./serve.ts";
export type { RunOptions, Stand, Workers } from "./types.ts";
