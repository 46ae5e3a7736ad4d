/** Limits of worker threads. */

import { MIB } from "./units.ts";

export const WORKER_THREADS_MAX = 64;
/** The heap of one thread; a task that needs more is ended with it. Buffers lie outside the heap and do not count. */
export const WORKER_HEAP_MAX_BYTES = 256 * MIB;
/** Tasks of one tenant that wait for a thread. */
export const WORKER_QUEUE_TENANT_MAX_TASKS = 256;
/** Tasks of all tenants that wait for a thread. */
export const WORKER_QUEUE_MAX_TASKS = 1_024;
/** Threads that a task is given: a thread may end after a task was sent to it and before the task began. */
export const WORKER_TASK_THREADS_MAX = 2;
/** A thread that had no task for so long is ended: each takes some 15 MB even then. */
export const WORKER_IDLE_MAX_MS = 60_000;
/** For tasks under way when the controller ends: they may finish within this. */
export const WORKER_CLOSE_DEADLINE_MS = 2_000;
/** How long a thread may take to end. Native code, such as one step of V8's regular expressions, is not interrupted. */
export const WORKER_END_DEADLINE_MS = 1_000;

/** Whether a Lua text is to end is asked every so many instructions. */
export const LUA_HOOK_INSTRUCTIONS = 1_000;
/** Larger globals of a run are read by Lua itself: a function of Lua holds a bounded number of constants. */
export const LUA_LITERAL_MAX_CHARACTERS = 128 * 1_024;
/** Deeper ones too: each list in a list may take 50 of its 250 registers. */
export const LUA_LITERAL_DEPTH_MAX = 4;
/** Runs whose globals are read at once. */
export const LUA_LITERAL_RUNS_MAX = 32;
/** Names of members that a Lua VM keeps as it writes them into JSON. */
export const LUA_NAMES_KEPT_MAX = 256;
/** A layout by which Lua reads or shows a time. */
export const LUA_LAYOUT_MAX_CHARACTERS = 100;
/** A time as a text: expressions that look at it take at most a time quadratic in its length. */
export const TIME_TEXT_MAX_CHARACTERS = 200;
/** A layout by which rules read times. */
export const TIME_LAYOUT_MAX_CHARACTERS = 200;
/** Layouts that `--time_layout` of one rule may give. */
export const TIME_LAYOUTS_PER_RULE_MAX = 16;
/** Compiled layouts, and zones by their names, that one process keeps. */
export const TIME_LAYOUTS_KEPT = 1_000;
export const TIME_ZONE_NAMES_KEPT = 1_000;
/** A Lua VM that has more after a run is not kept for the next one. */
export const LUA_VM_KEPT_MAX_BYTES = 16 * MIB;
/** Lua VMs that a thread keeps, each of one owner and text; the one used longest ago leaves first. */
export const LUA_VMS_PER_THREAD_MAX = 8;
/** Answers of runs that a VM gives at once; the runs that are left follow. */
export const LUA_ANSWERS_MAX_CHARACTERS = 256 * 1_024;
