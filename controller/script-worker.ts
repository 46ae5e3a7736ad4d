import { javascriptTask } from "./scripting/javascript/task.ts";
import { luaTask } from "./scripting/lua/task.ts";
import type { ScriptThreadData } from "./scripting/task.ts";
import { serveTasks, threadData } from "./workers/index.ts";

/** Main file of the threads that run scripts, with one task for each language. */
const data = threadData() as ScriptThreadData;
const TASKS = { javascript: javascriptTask(data), lua: luaTask(data) } as const;

serveTasks(TASKS);
