/** Limits of scripts: serverJS, triggers, rules. */

import { MIB } from "./units.ts";

/** Memory of one script's virtual machine: an answer of 16 MiB is held three times over. */
export const SCRIPT_MEMORY_MAX_BYTES = 128 * MIB;
export const SCRIPT_STACK_MAX_BYTES = 512 * 1_024;
/** What a run of JavaScript may use before its machine grows, which it then is given up for: some thousand rows. */
export const SCRIPT_MEMORY_READY_BYTES = MIB;
/** Machines of JavaScript that a thread keeps between runs, of different tenants, each with twice some 3 MiB. */
export const SCRIPT_MACHINES_KEPT_MAX = 4;
/** The text of one script. */
export const SCRIPT_SOURCE_MAX_BYTES = 2 * MIB;
/** What a script answers, as JSON. */
export const SCRIPT_OUTPUT_MAX_CHARACTERS = 24 * MIB;
/** Lists and objects within each other, in what a script answers and in arguments of host calls; as in Lua's own JSON. */
export const SCRIPT_VALUE_MAX_DEPTH = 100;
/** Members of objects and entries of lists, all together, in what a script answers or gives to one host call. */
export const SCRIPT_VALUE_MAX_MEMBERS = 250_000;
/** The text of an error that a script throws; the rest is cut off, and the text says so. Details beyond are left out. */
export const SCRIPT_ERROR_MAX_CHARACTERS = 4_096;
/** Arguments of one host call, and its answer, as JSON. */
export const SCRIPT_CALL_MAX_CHARACTERS = 24 * MIB;
export const SCRIPT_CALLS_MAX = 10_000;
/** A host call may run a script whose host calls run scripts, so many steps deep. */
export const SCRIPT_DEPTH_MAX = 16;
/**
 * Threads for the scripts of one step; those of deeper steps have threads of their own. Of them a tenant has at most
 * `SCRIPT_TENANT_THREADS`, each kind of script in it (scripts, triggers, rule bodies) `SCRIPT_KIND_THREADS`, each user
 * within a kind `SCRIPT_USER_THREADS`. A tenant or user with n threads gets another one only while more than n are free
 * around it: of four threads of a kind a user has two, a second user then one, and the last one is for a third.
 */
export const SCRIPT_THREADS = 32;
/** As many as the three kinds of a tenant have together, so that none of them waits for another. */
export const SCRIPT_TENANT_THREADS = 12;
export const SCRIPT_KIND_THREADS = 4;
export const SCRIPT_USER_THREADS = 2;
/** A script whose host call takes longer stands still: what it waits for may need a thread of the same step. */
export const SCRIPT_STANDING_AFTER_MS = 20;
/**
 * So many scripts of a user stand still after less time. Others of the user then begin while these wait for the disk, and
 * what all of them write becomes durable together. More threads than that cost more to start than they save.
 */
export const SCRIPT_STANDING_BRIEFLY_AFTER_MS = 1;
export const SCRIPT_USER_STANDING_BRIEFLY_THREADS = 4;
/** Threads of one step there may be besides, while as many scripts stand still; in all, of a tenant, a kind, a user. */
export const SCRIPT_STANDING_THREADS = 96;
export const SCRIPT_TENANT_STANDING_THREADS = 96;
export const SCRIPT_KIND_STANDING_THREADS = 32;
export const SCRIPT_USER_STANDING_THREADS = 16;
/** Scripts of one step that wait for a thread; in all, of a tenant, a kind, a user. */
export const SCRIPT_QUEUE_MAX_TASKS = 2_048;
export const SCRIPT_QUEUE_TENANT_MAX_TASKS = 768;
export const SCRIPT_QUEUE_KIND_MAX_TASKS = 256;
export const SCRIPT_QUEUE_USER_MAX_TASKS = 192;
/** A script that is told to stop has so long; then its thread is ended. */
export const SCRIPT_STOP_GRACE_MS = 1_000;
/**
 * A script whose thread uses a processor for so long without a moment at which it can be stopped is ended with that
 * thread. Such moments come in Lua after 1,000 instructions each (`LUA_HOOK_INSTRUCTIONS`), in JavaScript after some
 * 10,000 loops or calls, and within its regular expressions; between them lie built-in functions, such as `string.find`
 * of Lua.
 */
export const SCRIPT_NATIVE_MAX_MS = { lua: 3_000, javascript: 10_000 } as const;
/** How often the other thread looks within that time: one that was held up itself ends no script by one look. */
export const SCRIPT_NATIVE_LOOKS = 5;
/**
 * How often the run of a rule's body for one record may be asked whether it is to stop: in Lua after 1,000 instructions
 * each (`LUA_HOOK_INSTRUCTIONS`), in JavaScript after some 10,000 loops or calls.
 */
export const RULE_STEPS_MAX = { lua: 5_000, javascript: 500 } as const;
/** Records that a rule's body is run for at once, on one thread, and from the call to the answer of all of them. */
export const RULE_SERIES_MAX_RECORDS = 250;
export const RULE_SERIES_MAX_CHARACTERS = MIB;
export const RULE_SERIES_DEADLINE_MS = 30_000;
/** What the body of a rule makes of one record, as JSON. */
export const RULE_RESULT_MAX_CHARACTERS = 128 * 1_024;
export const RULE_ROWS_PER_RECORD_MAX = 100;
/** Records that one record is passed on as, and how many rules it goes through one after the other. */
export const RULE_FORWARDS_PER_RECORD_MAX = 16;
export const RULE_FORWARD_DEPTH_MAX = 8;
/** Rules that one rule reaches by passing records on, and the texts that are pinned with it, as JSON. */
export const RULE_FORWARDED_RULES_MAX = 16;
export const RULE_PINNED_MAX_BYTES = 512 * 1_024;
/** Lines that a rule is tried on at once, and all of them together. */
export const RULE_TRIAL_MAX_LINES = 200;
export const RULE_TRIAL_MAX_CHARACTERS = MIB;
/**
 * Raw records that a controller keeps in its memory to try rules on: the latest of a policy, what their texts have together, and
 * what the records of a tenant have with `RECENT_RECORD_CHARACTERS` for each; beyond that the policy that had none for longest goes.
 */
export const RECENT_RECORDS_MAX = 200;
export const RECENT_POLICY_MAX_CHARACTERS = 64 * 1_024;
export const RECENT_TENANT_MAX_CHARACTERS = 512 * 1_024;
export const RECENT_RECORD_CHARACTERS = 256;
/** Where a trial says nothing else, and how long it waits for what other controllers have. */
export const RECENT_RECORDS_DEFAULT = 20;
export const RECENT_ASK_MS = 2_000;
/** What bodies keep by `setcache`, of one tenant, in the memory of a controller. */
export const RULE_CACHED_TENANT_MAX_CHARACTERS = 4 * MIB;
/** Classes that one rule keeps by `--cache_classes`; rows of each, and what they take as JSON; for how long. */
export const RULE_CACHED_CLASSES_MAX = 8;
export const RULE_CACHED_CLASS_MAX_ROWS = 10_000;
export const RULE_CACHED_CLASS_MAX_CHARACTERS = 4 * MIB;
export const RULE_CACHED_CLASS_MS = 10_000;
/** Classes that a controller keeps for all rules. */
export const RULE_CACHED_CLASSES_KEPT_MAX = 32;
/** Records that rules try again: how often after the first time, and after how long, where nothing else is said. */
export const RULE_RETRY_TOTAL = 3;
export const RULE_RETRY_INTERVAL_MS = 60_000;
export const RULE_RETRY_TOTAL_MAX = 100;
/** From the first time to the last: within `RULE_TEXT_KEPT_MS`. */
export const RULE_RETRY_SPAN_MAX_MS = 7 * 24 * 3_600_000;
/** Records of a tenant that wait to be tried again; what is beyond is an error at once. */
export const RULE_RETRIES_WAITING_MAX = 10_000;
/** They are counted again after so long, and after a share of what was free is taken. */
export const RULE_RETRIES_COUNTED_MS = 1_000;
export const RULE_RETRIES_COUNTED_SHARE = 16;
/** A record that waits is forgotten so long after it was set aside. */
export const RULE_RETRIES_TTL_DAYS = 14;
/** A connection that the body of a rule dials: until it is there at most. */
export const RULE_DIAL_MAX_SECONDS = 10;
/** From its call to its answer, of a script that a client runs; the call itself has `HTTP_CALL_DEADLINE_MS`. */
export const SCRIPT_RUN_DEADLINE_MS = 100_000;
/** Entries that one run leaves in its console log; what is beyond is counted in one more. */
export const SCRIPT_LOG_MAX_ENTRIES = 1_000;
/** Characters of one entry; the rest is cut off, and the entry says so. */
export const SCRIPT_LOG_ENTRY_MAX_CHARACTERS = 8_192;
/** Each text of a frame that a script sends. */
export const SCRIPT_MESSAGE_MAX_CHARACTERS = 65_536;
/** Calls that one `concurrent.run` makes, and how many of them at once. */
export const SCRIPT_CONCURRENT_MAX_CALLS = 1_000;
export const SCRIPT_CONCURRENT_AT_ONCE = 8;
/** Requests of scripts to other servers: bytes of an answer, from the request to its end, redirects. */
export const SCRIPT_HTTP_MAX_BYTES = 16 * MIB;
export const SCRIPT_HTTP_DEADLINE_MS = 30_000;
export const SCRIPT_HTTP_REDIRECTS_MAX = 5;
/** Under way at once, of all tenants and of one. */
export const SCRIPT_HTTP_AT_ONCE = 64;
export const SCRIPT_HTTP_TENANT_AT_ONCE = 16;
