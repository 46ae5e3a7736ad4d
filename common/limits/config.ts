/** Limits of the configuration store. */

import { DAY_SECONDS, KIB, MIB } from "./units.ts";

/** Of a whole key; what is stored under it has a few bytes more, within `KV_KEY_MAX_BYTES`. */
export const CONFIG_KEY_MAX_BYTES = 900;
export const CONFIG_VALUE_MAX_BYTES = 256 * KIB;
/** Of a value as it lies in the store, escaped or sealed, with its author and time. */
export const CONFIG_STORED_MAX_BYTES = 512 * KIB;
/** ttl beyond it is refused. */
export const CONFIG_TTL_MAX_SECONDS = 36_500 * DAY_SECONDS;
/** Versions of one key that are kept, the present one and deletes among them, and for how long. */
export const CONFIG_HISTORY_MAX_ENTRIES = 50;
export const CONFIG_HISTORY_KEEP_DAYS = 90;
/** Attempts of one change, each on what other controllers wrote meanwhile. */
export const CONFIG_WRITE_ATTEMPTS_MAX = 16;
/** Keys that one transaction changes: four conditions and operations each, two for the note of how far it is. */
export const CONFIG_TXN_MAX_KEYS = 29;
/** Bytes of one transaction, histories included: etcd takes 1.5 MiB. */
export const CONFIG_TXN_MAX_BYTES = MIB + 128 * KIB;
/** Reads of single keys that are under way at once for one change. */
export const CONFIG_READS_AT_ONCE = 16;
/** One answer with a whole tree; larger ones are read by parts or page by page. */
export const CONFIG_TREE_MAX_ENTRIES = 20_000;
export const CONFIG_TREE_MAX_BYTES = 16 * MIB;
export const CONFIG_PAGE_DEFAULT_ENTRIES = 200;
/** Keys that one import or one delete of a directory changes. */
export const CONFIG_CHANGE_MAX_KEYS = 100_000;
export const CONFIG_IMPORT_MAX_BYTES = 16 * MIB;
/** Members of all objects in the text of an import. */
export const CONFIG_IMPORT_MAX_MEMBERS = 1_000_000;
/** Up to so many keys are read one by one, more by listing what lies around them. */
export const CONFIG_SINGLE_READS_MAX = 200;
/** Faults of one import that are told together, and keys of a plan that are named. */
export const CONFIG_FAULTS_MAX = 20;
export const CONFIG_PLAN_SHOWN_MAX = 1_000;
/** Changes beyond one transaction that one controller works on at the same time. */
export const CONFIG_CHANGES_UNDER_WAY_MAX = 4;
/** A call waits so long for such a change, less than `HTTP_CALL_DEADLINE_MS`. */
export const CONFIG_CHANGE_ANSWER_MS = 100_000;
/** Lines in which two versions differ, beyond which no difference is told: the search is quadratic. */
export const CONFIG_DIFF_MAX_EDITS = 1_000;
/** Reads that are kept for callers to whom an answer may be so old; see `ConfigCache`. */
export const CONFIG_CACHED_MAX_AGE_MS = 2_000;
export const CONFIG_CACHED_READS_MAX = 10_000;
export const CONFIG_CACHED_MAX_BYTES = 32 * MIB;
/** Larger trees are not kept, but read anew. */
export const CONFIG_CACHED_TREE_MAX_ENTRIES = 1_000;
/** Values that a schema enumerates. */
export const CONFIG_SCHEMA_VALUES_MAX = 1_000;
/** Up to so many schemas are read before an import, more when a key needs them. */
export const CONFIG_SCHEMAS_PRELOADED_MAX = 1_000;
/** Entries that one watch remembers it told of. */
export const CONFIG_WATCHED_MAX_ENTRIES = 20_000;
