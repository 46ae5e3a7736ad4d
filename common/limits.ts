/** Every bound of the program, by name and with its unit last. Grouped by the part that keeps it. */

const KIB = 1024;
const MIB = 1024 * KIB;

// Key-value store. Both engines keep the same limits; they are etcd's, made round.
export const KV_KEY_MAX_BYTES = KIB;
export const KV_VALUE_MAX_BYTES = MIB;
export const KV_TXN_MAX_OPERATIONS = 128;
export const KV_PAGE_MAX_ENTRIES = 1_000;
export const KV_LEASE_MIN_MS = 1_000;
export const KV_LEASE_MAX_MS = 24 * 3_600_000;

// Object store.
export const OBJECT_ID_MAX_BYTES = KIB;
export const OBJECT_MAX_BYTES = 4 * MIB;
export const CELL_MAX_BYTES = MIB;
/** Terms beyond this are cut, which is why a condition on a term is always rechecked on the value. */
export const TERM_MAX_BYTES = KIB;
export const TERMS_PER_OBJECT_MAX = 2_000;
export const OBJECT_PAGE_MAX = 1_000;
export const CHANGE_BATCH_MAX = 1_000;
/** Numeric index columns every stored object has; slot 0 is the object's version time. */
export const NUMBER_SLOTS = 3;

// Blob store.
export const BLOB_CHUNK_MAX_BYTES = MIB;
export const BLOB_MAX_BYTES = 2_048 * MIB;

// Waiting.
export const STORE_CALL_DEADLINE_MS = 12_000;
export const SHUTDOWN_DEADLINE_MS = 10_000;

// HTTP.
export const HTTP_BODY_MAX_BYTES = 16 * MIB;
export const HTTP_UPLOAD_MAX_BYTES = 512 * MIB;
export const HTTP_UPLOAD_MAX_FILES = 256;
export const HTTP_FORM_MAX_FIELDS = 2_000;
export const HTTP_CALL_DEADLINE_MS = 120_000;
export const TENANT_CALLS_IN_FLIGHT_MAX = 256;
export const TENANT_CALLS_WAITING_MAX = 1_024;

// Regular expressions of users.
export const PATTERN_MAX_CHARACTERS = 8_000;
/** Instructions of the compiled program: counted repeats inside counted repeats multiply them. */
export const PATTERN_MAX_PROGRAM = 20_000;

// Rules and what agents send.
export const RULE_TEXT_MAX_BYTES = 256 * KIB;
export const RULE_CACHE_MAX_ENTRIES = 1_000;
export const GROK_DEPTH_MAX = 16;
export const GROK_PATTERNS_PER_RULE_MAX = 64;
/** A raw record longer than this is parsed as far as it goes and marked. */
export const RECORD_MAX_BYTES = 256 * KIB;
export const INGEST_BATCH_MAX_ENTRIES = 1_000;
export const INGEST_ERRORS_KEPT_PER_BATCH = 100;
export const PARSE_FILE_MAX_BYTES = 256 * MIB;
