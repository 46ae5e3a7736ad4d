/** Limits of scripts: serverJS, triggers, rules. */

import { MIB } from "./units.ts";

/** Memory of one script's virtual machine: an answer of 16 MiB is held three times over. */
export const SCRIPT_MEMORY_MAX_BYTES = 128 * MIB;
export const SCRIPT_STACK_MAX_BYTES = 512 * 1_024;
/** The text of one script. */
export const SCRIPT_SOURCE_MAX_BYTES = 2 * MIB;
/** What a script answers, as JSON. */
export const SCRIPT_OUTPUT_MAX_CHARACTERS = 24 * MIB;
/** Arguments of one host call, and its answer, as JSON. */
export const SCRIPT_CALL_MAX_CHARACTERS = 24 * MIB;
export const SCRIPT_CALLS_MAX = 10_000;
/** A host call may run a script whose host calls run scripts, so many steps deep. */
export const SCRIPT_DEPTH_MAX = 16;
/** Threads for the scripts of one step; those of deeper steps have threads of their own. */
export const SCRIPT_THREADS = 4;
/** Threads of one step that scripts of one tenant have at once. */
export const SCRIPT_TENANT_THREADS = 2;
/** A script whose host call takes longer stands still: what it waits for may need a thread of the same step. */
export const SCRIPT_STANDING_AFTER_MS = 20;
/** Threads of one step there may be besides, while as many scripts stand still; in all, and of one tenant. */
export const SCRIPT_STANDING_THREADS = 32;
export const SCRIPT_TENANT_STANDING_THREADS = 16;
/** A script that is told to stop has so long; then its thread is ended. */
export const SCRIPT_STOP_GRACE_MS = 1_000;
/** From its call to its answer, of a script that a client runs; the call itself has `HTTP_CALL_DEADLINE_MS`. */
export const SCRIPT_RUN_DEADLINE_MS = 100_000;
/** Entries that one run leaves in its console log; what is beyond is counted in one more. */
export const SCRIPT_LOG_MAX_ENTRIES = 1_000;
/** Of one entry; the rest is cut off. */
export const SCRIPT_LOG_ENTRY_MAX_CHARACTERS = 8_192;
/** Each text of a frame that a script sends. */
export const SCRIPT_MESSAGE_MAX_CHARACTERS = 65_536;
/** Calls that one `concurrent.run` makes, and how many of them at once. */
export const SCRIPT_CONCURRENT_MAX_CALLS = 1_000;
export const SCRIPT_CONCURRENT_AT_ONCE = 8;
