import { javascriptTask } from "./scripting/javascript/task.ts";
import { luaTask } from "./scripting/lua/task.ts";
import type { ScriptThreadData } from "./scripting/task.ts";
import { serveTasks, threadData } from "./workers/index.ts";

/** What runs scripts, by their language; this file is the main file of their threads. */
const data = threadData() as ScriptThreadData;
const TASKS = { javascript: javascriptTask(data), lua: luaTask(data) } as const;

serveTasks(TASKS);
