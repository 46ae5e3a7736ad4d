import { FILE_TASKS } from "./areas/files/tasks.ts";
import { RULE_TASKS } from "./areas/rules/tasks.ts";
import { serveTasks } from "./workers/index.ts";

/** Tasks of the areas for worker threads. This file is the thread's main file. */
const TASKS = { ...FILE_TASKS, ...RULE_TASKS } as const;
export type ControllerTasks = typeof TASKS;

serveTasks(TASKS);
