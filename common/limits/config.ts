/** Limits of the configuration store. */

import { DAY_SECONDS, KIB, MIB } from "./units.ts";

/** Bytes of a whole key. The stored key has a few bytes more, within `KV_KEY_MAX_BYTES`. */
export const CONFIG_KEY_MAX_BYTES = 900;
export const CONFIG_VALUE_MAX_BYTES = 256 * KIB;
/** Bytes of a stored value: escaped or sealed, with its author and time. */
export const CONFIG_STORED_MAX_BYTES = 512 * KIB;
/** A longer ttl is refused. */
export const CONFIG_TTL_MAX_SECONDS = 36_500 * DAY_SECONDS;
/** Kept versions of one key, including the current one and deletions, and the time for which they are kept. */
export const CONFIG_HISTORY_MAX_ENTRIES = 50;
export const CONFIG_HISTORY_KEEP_DAYS = 90;
/** Attempts of one change; each attempt starts from what other controllers have just written. */
export const CONFIG_WRITE_ATTEMPTS_MAX = 16;
/** Keys per transaction: four conditions and operations each, plus two for the record of progress. */
export const CONFIG_TXN_MAX_KEYS = 29;
/** Bytes per transaction, including histories. etcd takes 1.5 MiB. */
export const CONFIG_TXN_MAX_BYTES = MIB + 128 * KIB;
/** Concurrent reads of single keys for one change. */
export const CONFIG_READS_AT_ONCE = 16;
/** Limits of one answer with a whole tree. Larger trees are read in parts or page by page. */
export const CONFIG_TREE_MAX_ENTRIES = 20_000;
export const CONFIG_TREE_MAX_BYTES = 16 * MIB;
export const CONFIG_PAGE_DEFAULT_ENTRIES = 200;
/** Keys changed by one import, or by one deletion of a directory. */
export const CONFIG_CHANGE_MAX_KEYS = 100_000;
export const CONFIG_IMPORT_MAX_BYTES = 16 * MIB;
/** Members of all objects in the text of an import. */
export const CONFIG_IMPORT_MAX_MEMBERS = 1_000_000;
/** Up to this number keys are read one by one; more are read by listing their surroundings. */
export const CONFIG_SINGLE_READS_MAX = 200;
/** Faults of one import that are reported together, and keys that a plan names. */
export const CONFIG_FAULTS_MAX = 20;
export const CONFIG_PLAN_SHOWN_MAX = 1_000;
/** Concurrent changes with several transactions per controller. */
export const CONFIG_CHANGES_UNDER_WAY_MAX = 4;
/** Time a call waits for such a change; less than `HTTP_CALL_DEADLINE_MS`. */
export const CONFIG_CHANGE_ANSWER_MS = 100_000;
/** Different lines up to which two versions are compared, because the comparison is quadratic. */
export const CONFIG_DIFF_MAX_EDITS = 1_000;
/** Maximum age of a cached read, for callers that accept it; see `ConfigCache`. */
export const CONFIG_CACHED_MAX_AGE_MS = 2_000;
export const CONFIG_CACHED_READS_MAX = 10_000;
export const CONFIG_CACHED_MAX_BYTES = 32 * MIB;
/** Larger trees are not cached. */
export const CONFIG_CACHED_TREE_MAX_ENTRIES = 1_000;
/** Values that a schema enumerates. */
export const CONFIG_SCHEMA_VALUES_MAX = 1_000;
/** Up to this number schemas are loaded before an import; with more, each is read when a key needs it. */
export const CONFIG_SCHEMAS_PRELOADED_MAX = 1_000;
/** Entries that one watch remembers as already sent. */
export const CONFIG_WATCHED_MAX_ENTRIES = 20_000;
