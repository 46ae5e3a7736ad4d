import { RULE_TASKS } from "./areas/rules/tasks.ts";
import { serveTasks } from "./workers/index.ts";

/** What areas give to worker threads; this file is the thread's main. */
const TASKS = { ...RULE_TASKS } as const;
export type ControllerTasks = typeof TASKS;

serveTasks(TASKS);
