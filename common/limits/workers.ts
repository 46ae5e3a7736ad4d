/** Limits of worker threads. */

import { MIB } from "./units.ts";

export const WORKER_THREADS_MAX = 64;
/**
 * Heap of one thread. A task that needs more ends together with its thread. Buffers are outside the heap and do not
 * count.
 */
export const WORKER_HEAP_MAX_BYTES = 256 * MIB;
/** Tasks of one tenant that wait for a thread. */
export const WORKER_QUEUE_TENANT_MAX_TASKS = 256;
/** Tasks of all tenants that wait for a thread. */
export const WORKER_QUEUE_MAX_TASKS = 1_024;
/** Threads that a task is sent to, because a thread may end after it was sent a task and before the task began. */
export const WORKER_TASK_THREADS_MAX = 2;
/** Idle time after which a thread is ended, because even an idle thread takes some 15 MB. */
export const WORKER_IDLE_MAX_MS = 60_000;
/** Time for running tasks to finish when the controller stops. */
export const WORKER_CLOSE_DEADLINE_MS = 2_000;
/** Time for a thread to end. Native code cannot be interrupted, such as one step of V8's regular expressions. */
export const WORKER_END_DEADLINE_MS = 1_000;

/** Lua instructions between two checks whether a script must stop. */
export const LUA_HOOK_INSTRUCTIONS = 1_000;
/**
 * Larger globals of a run are parsed by Lua code, because a Lua function can hold only a limited number of constants.
 */
export const LUA_LITERAL_MAX_CHARACTERS = 128 * 1_024;
/** Deeper globals, too: each nested list may take 50 of the 250 registers. */
export const LUA_LITERAL_DEPTH_MAX = 4;
/** Runs whose globals are read together. */
export const LUA_LITERAL_RUNS_MAX = 32;
/** Names of members that a Lua VM caches in their JSON form. */
export const LUA_NAMES_KEPT_MAX = 256;
/** A layout by which Lua reads or formats a time. */
export const LUA_LAYOUT_MAX_CHARACTERS = 100;
/** A time as text. Expressions that examine it take time at most quadratic in its length. */
export const TIME_TEXT_MAX_CHARACTERS = 200;
/** A layout by which rules read times. */
export const TIME_LAYOUT_MAX_CHARACTERS = 200;
/** Layouts in `--time_layout` of one rule. */
export const TIME_LAYOUTS_PER_RULE_MAX = 16;
/** Compiled layouts, and zones by name, that one process caches. */
export const TIME_LAYOUTS_KEPT = 1_000;
export const TIME_ZONE_NAMES_KEPT = 1_000;
/** A Lua VM that uses more memory after a run is not reused. */
export const LUA_VM_KEPT_MAX_BYTES = 16 * MIB;
/** Lua VMs that a thread keeps, each for one owner and text. The one used longest ago is dropped first. */
export const LUA_VMS_PER_THREAD_MAX = 8;
/** Characters of run results that a VM returns at once; the remaining results follow. */
export const LUA_ANSWERS_MAX_CHARACTERS = 256 * 1_024;
