/** Limits of scripts: serverJS, triggers, rules. */

import { MIB } from "./units.ts";

/** Memory of one script's virtual machine: an answer of 16 MiB is held three times. */
export const SCRIPT_MEMORY_MAX_BYTES = 128 * MIB;
export const SCRIPT_STACK_MAX_BYTES = 512 * 1_024;
/**
 * Memory that a run of JavaScript may use before its machine grows: some thousand rows. A machine that has grown is not
 * reused.
 */
export const SCRIPT_MEMORY_READY_BYTES = MIB;
/** JavaScript machines of different tenants that a thread keeps between runs. Each takes twice some 3 MiB. */
export const SCRIPT_MACHINES_KEPT_MAX = 4;
/** Text of one script. */
export const SCRIPT_SOURCE_MAX_BYTES = 2 * MIB;
/** Texts of required files that a run keeps to count the columns of its errors. Further files have columns in bytes. */
export const SCRIPT_REQUIRED_TEXTS_MAX_CHARACTERS = 8 * MIB;
/** Result of a script, as JSON. */
export const SCRIPT_OUTPUT_MAX_CHARACTERS = 24 * MIB;
/**
 * Nesting of lists and objects in results of scripts and in arguments of host calls. Lua's own JSON has the same limit.
 */
export const SCRIPT_VALUE_MAX_DEPTH = 100;
/** Members of all objects, plus entries of all lists, in a script's result or in the arguments of one host call. */
export const SCRIPT_VALUE_MAX_MEMBERS = 250_000;
/** Text of an error that a script throws. The rest is cut off, and the text says so. Larger details are left out. */
export const SCRIPT_ERROR_MAX_CHARACTERS = 4_096;
/** Arguments of one host call, and its result, as JSON. */
export const SCRIPT_CALL_MAX_CHARACTERS = 24 * MIB;
export const SCRIPT_CALLS_MAX = 10_000;
/** Depth of scripts: a host call may run a script whose host calls run scripts. */
export const SCRIPT_DEPTH_MAX = 16;
/**
 * Threads for the scripts of one depth; scripts of each greater depth have threads of their own. A tenant has at most
 * `SCRIPT_TENANT_THREADS` of them, each kind of its scripts (scripts, triggers, rule bodies) `SCRIPT_KIND_THREADS`,
 * each user within a kind `SCRIPT_USER_THREADS`. A tenant or user with n threads gets another one only while more than
 * n are free around it: of the four threads of a kind a user gets two, a second user one, and a third user the last
 * one.
 */
export const SCRIPT_THREADS = 32;
/** The sum for the three kinds of a tenant, so that none of them waits for another. */
export const SCRIPT_TENANT_THREADS = 12;
export const SCRIPT_KIND_THREADS = 4;
export const SCRIPT_USER_THREADS = 2;
/**
 * Time after which a script that waits for a host call counts as standing still. The call may need a thread of the same
 * depth.
 */
export const SCRIPT_STANDING_AFTER_MS = 20;
/**
 * The same time for the first such scripts of a user, so that other scripts of the user start while these wait for the
 * disk. The writes of all of them then become durable together. More threads than that cost more to start than they
 * save.
 */
export const SCRIPT_STANDING_BRIEFLY_AFTER_MS = 1;
export const SCRIPT_USER_STANDING_BRIEFLY_THREADS = 4;
/** Additional threads of one depth while as many scripts stand still: in all, per tenant, per kind and per user. */
export const SCRIPT_STANDING_THREADS = 96;
export const SCRIPT_TENANT_STANDING_THREADS = 96;
export const SCRIPT_KIND_STANDING_THREADS = 32;
export const SCRIPT_USER_STANDING_THREADS = 16;
/** Scripts of one depth that wait for a thread: in all, per tenant, per kind and per user. */
export const SCRIPT_QUEUE_MAX_TASKS = 2_048;
export const SCRIPT_QUEUE_TENANT_MAX_TASKS = 768;
export const SCRIPT_QUEUE_KIND_MAX_TASKS = 256;
export const SCRIPT_QUEUE_USER_MAX_TASKS = 192;
/** Time for a script to stop when told to; then its thread is ended. */
export const SCRIPT_STOP_GRACE_MS = 1_000;
/**
 * Processor time that a script's thread may use without a point at which the script can be stopped; then the thread is
 * ended. Such points come after every 1,000 instructions in Lua (`LUA_HOOK_INSTRUCTIONS`), after some 10,000 loops or
 * calls in JavaScript, and within its regular expressions. Built-in functions have none, such as Lua's `string.find`.
 */
export const SCRIPT_NATIVE_MAX_MS = { lua: 3_000, javascript: 10_000 } as const;
/**
 * Time between two checks of the processor time of a run. A single check never ends a script, because the thread that
 * checks may have been held up itself.
 */
export const SCRIPT_LOOK_MS = 250;
/** Processor time after which a run has the lower priority `PRIORITY_BELOW_NORMAL`, where the system allows it. */
export const SCRIPT_LONG_RUN_MS = 500;
/**
 * Stop checks in the run of a rule's body for one record: one per 1,000 instructions in Lua (`LUA_HOOK_INSTRUCTIONS`),
 * one per some 10,000 loops or calls in JavaScript.
 */
export const RULE_STEPS_MAX = { lua: 5_000, javascript: 500 } as const;
/**
 * Records of one series, for which a rule's body runs on one thread, their characters, and the deadline of the series.
 */
export const RULE_SERIES_MAX_RECORDS = 250;
export const RULE_SERIES_MAX_CHARACTERS = MIB;
export const RULE_SERIES_DEADLINE_MS = 30_000;
/** Result of a rule's body for one record, as JSON. */
export const RULE_RESULT_MAX_CHARACTERS = 128 * 1_024;
export const RULE_ROWS_PER_RECORD_MAX = 100;
/** Records as which one record is forwarded, and rules it passes one after another. */
export const RULE_FORWARDS_PER_RECORD_MAX = 16;
export const RULE_FORWARD_DEPTH_MAX = 8;
/** Rules that one rule reaches by forwarding records, and bytes of the texts pinned with it, as JSON. */
export const RULE_FORWARDED_RULES_MAX = 16;
export const RULE_PINNED_MAX_BYTES = 512 * 1_024;
/** Time that a preview of a policy reads output of its host, and bytes of the output. At either bound it is cut. */
export const POLICY_PREVIEW_MS = 20_000;
export const POLICY_PREVIEW_OUTPUT_MAX_BYTES = MIB;
/** Records that a preview shows unless it is told how many; at most `RULE_TRIAL_MAX_LINES`. */
export const POLICY_PREVIEW_RECORDS_DEFAULT = 20;
/** Bytes of the end of a file that a preview of a log policy reads, and files that it chooses from. */
export const POLICY_PREVIEW_TAIL_BYTES = 256 * 1_024;
export const POLICY_PREVIEW_FILES_MAX = 2_000;
/** Lines of one trial of a rule, and characters of all of them. */
export const RULE_TRIAL_MAX_LINES = 200;
export const RULE_TRIAL_MAX_CHARACTERS = MIB;
/**
 * Raw records that a controller keeps in memory for trials of rules: the latest ones per policy, characters per policy,
 * and characters per tenant with `RECENT_RECORD_CHARACTERS` added per record. Beyond that, the policy that has had no
 * record for longest is dropped.
 */
export const RECENT_RECORDS_MAX = 200;
export const RECENT_POLICY_MAX_CHARACTERS = 64 * 1_024;
export const RECENT_TENANT_MAX_CHARACTERS = 512 * 1_024;
export const RECENT_RECORD_CHARACTERS = 256;
/** Default number of records of a trial, and the time it waits for records from other controllers. */
export const RECENT_RECORDS_DEFAULT = 20;
export const RECENT_ASK_MS = 2_000;
/** Values that rule bodies of one tenant cache by `setcache`, in the memory of a controller. */
export const RULE_CACHED_TENANT_MAX_CHARACTERS = 4 * MIB;
/**
 * Classes that one rule caches by `--cache_classes`, rows per class, their characters as JSON, and the time they are
 * kept.
 */
export const RULE_CACHED_CLASSES_MAX = 8;
export const RULE_CACHED_CLASS_MAX_ROWS = 10_000;
export const RULE_CACHED_CLASS_MAX_CHARACTERS = 4 * MIB;
export const RULE_CACHED_CLASS_MS = 10_000;
/** Classes that a controller caches for all rules. */
export const RULE_CACHED_CLASSES_KEPT_MAX = 32;
/** Defaults for records that rules retry: number of retries, and interval. */
export const RULE_RETRY_TOTAL = 3;
export const RULE_RETRY_INTERVAL_MS = 60_000;
export const RULE_RETRY_TOTAL_MAX = 100;
/** Time from the first attempt to the last; less than `RULE_TEXT_KEPT_MS`. */
export const RULE_RETRY_SPAN_MAX_MS = 7 * 24 * 3_600_000;
/** Records per tenant that wait for a retry; any more fail immediately. */
export const RULE_RETRIES_WAITING_MAX = 10_000;
/** They are counted again after this time, or after this part (one n-th) of the free places is used. */
export const RULE_RETRIES_COUNTED_MS = 1_000;
export const RULE_RETRIES_COUNTED_SHARE = 16;
/** Days after which a waiting record is deleted. */
export const RULE_RETRIES_TTL_DAYS = 14;
/** Deadline to open a connection that a rule's body dials. */
export const RULE_DIAL_MAX_SECONDS = 10;
/** Time from the call of a client's script to its result. The call itself has `HTTP_CALL_DEADLINE_MS`. */
export const SCRIPT_RUN_DEADLINE_MS = 100_000;
/** Entries of one run in its console log; one more entry counts the others. */
export const SCRIPT_LOG_MAX_ENTRIES = 1_000;
/** Characters of an entry. The rest is cut off, and the entry says so. */
export const SCRIPT_LOG_ENTRY_MAX_CHARACTERS = 8_192;
/** Characters of each text frame that a script sends. */
export const SCRIPT_MESSAGE_MAX_CHARACTERS = 65_536;
/** Calls of one `concurrent.run`, and how many of them run in parallel. */
export const SCRIPT_CONCURRENT_MAX_CALLS = 1_000;
export const SCRIPT_CONCURRENT_AT_ONCE = 8;
/** Requests of scripts to other servers: bytes of an answer, deadline up to its end, and redirects. */
export const SCRIPT_HTTP_MAX_BYTES = 16 * MIB;
export const SCRIPT_HTTP_DEADLINE_MS = 30_000;
export const SCRIPT_HTTP_REDIRECTS_MAX = 5;
/** Concurrent requests of all tenants, and of one. */
export const SCRIPT_HTTP_AT_ONCE = 64;
export const SCRIPT_HTTP_TENANT_AT_ONCE = 16;
