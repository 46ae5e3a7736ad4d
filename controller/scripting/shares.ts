import {
  SCRIPT_KIND_STANDING_THREADS,
  SCRIPT_KIND_THREADS,
  SCRIPT_QUEUE_KIND_MAX_TASKS,
  SCRIPT_QUEUE_MAX_TASKS,
  SCRIPT_QUEUE_TENANT_MAX_TASKS,
  SCRIPT_QUEUE_USER_MAX_TASKS,
  SCRIPT_STANDING_THREADS,
  SCRIPT_TENANT_STANDING_THREADS,
  SCRIPT_TENANT_THREADS,
  SCRIPT_USER_STANDING_BRIEFLY_THREADS,
  SCRIPT_USER_STANDING_THREADS,
  SCRIPT_USER_THREADS,
} from "../../common/limits.ts";
import type { PoolLimits } from "../workers/index.ts";
import type { ScriptCall } from "./types.ts";

/** Bounds of the threads of one depth. */
export const SCRIPT_POOL_LIMITS = {
  tasks: SCRIPT_QUEUE_MAX_TASKS,
  tasksLimit: "SCRIPT_QUEUE_MAX_TASKS",
  standingThreads: SCRIPT_STANDING_THREADS,
  // In the order of `shareOf`, after the tenant.
  shares: [
    {
      threads: SCRIPT_TENANT_THREADS,
      standingThreads: SCRIPT_TENANT_STANDING_THREADS,
      leavesRoom: true,
      tasks: SCRIPT_QUEUE_TENANT_MAX_TASKS,
      tasksLimit: "SCRIPT_QUEUE_TENANT_MAX_TASKS",
    },
    {
      threads: SCRIPT_KIND_THREADS,
      standingThreads: SCRIPT_KIND_STANDING_THREADS,
      leavesRoom: false,
      tasks: SCRIPT_QUEUE_KIND_MAX_TASKS,
      tasksLimit: "SCRIPT_QUEUE_KIND_MAX_TASKS",
    },
    {
      threads: SCRIPT_USER_THREADS,
      standingThreads: SCRIPT_USER_STANDING_THREADS,
      brieflyThreads: SCRIPT_USER_STANDING_BRIEFLY_THREADS,
      leavesRoom: true,
      tasks: SCRIPT_QUEUE_USER_MAX_TASKS,
      tasksLimit: "SCRIPT_QUEUE_USER_MAX_TASKS",
    },
  ],
} as const satisfies Partial<PoolLimits>;

/** The shares within the tenant that a run belongs to. */
export function shareOf({ kind, user }: Pick<ScriptCall, "kind" | "user">): readonly string[] {
  return [kind, user];
}
