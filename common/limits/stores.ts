/** Limits of the stores: the seams, then each engine. */

import { KIB, MIB } from "./units.ts";

// Key-value store. Both engines keep the same limits; they are etcd's, made round.
export const KV_KEY_MAX_BYTES = KIB;
export const KV_VALUE_MAX_BYTES = MIB;
/** etcd takes 128 operations, those included that are put around them. */
export const KV_TXN_MAX_OPERATIONS = 120;
export const KV_PAGE_MAX_ENTRIES = 1_000;
export const KV_LEASE_MIN_MS = 1_000;
export const KV_LEASE_MAX_MS = 24 * 3_600_000;
/** Expired entries that are not read are found by looking through the store, so many entries at a time. */
export const KV_SWEEP_EVERY_MS = 15_000;
export const KV_SWEEP_MAX_ENTRIES = 200;

// Object store.
export const OBJECT_ID_MAX_BYTES = KIB;
export const OBJECT_MAX_BYTES = 4 * MIB;
export const CELL_MAX_BYTES = MIB;
/** Terms beyond this are cut, which is why a condition on a term is always rechecked on the value. */
export const TERM_MAX_BYTES = KIB;
export const TERMS_PER_OBJECT_MAX = 2_000;
/**
 * Removals of terms that the embedded engine remembers of one entity, the latest: as many as four changes make at most.
 * Beyond, a write that is repeated late adds terms that are not borne: readers recheck them, a scrub takes them away.
 */
export const REMOVED_TERMS_KEPT_MAX = 4 * TERMS_PER_OBJECT_MAX;
export const FIND_TERMS_MAX = 255;
export const OBJECT_PAGE_MAX = 1_000;
export const CHANGE_BATCH_MAX = 1_000;
/** Columns of numbers and times whose indexes know ranges, of a class with those above and below it. */
export const RANGE_SLOTS = 16;
/** Numeric index columns every stored object has; slot 0 is the object's version time. */
export const NUMBER_SLOTS = 1 + RANGE_SLOTS;

// Blob store.
export const BLOB_CHUNK_MAX_BYTES = MIB;
export const BLOB_MAX_BYTES = 2_048 * MIB;

// Embedded store.
/** Faults of one store that its check shows one by one; all are counted. */
export const CHECK_FAULTS_SHOWN_MAX = 50;
/** With less room than this a write that was cut short met a full disk, not a broken one. */
export const DISK_FULL_BELOW_BYTES = MIB;
/** Changes kept for watchers; a watcher further behind lists again. */
export const KV_LOG_MAX_ENTRIES = 10_000;
export const KV_LOG_MAX_BYTES = 64 * MIB;
/** Of these the latest are in memory, for watches that keep up. */
export const KV_RECENT_MAX_ENTRIES = 4_000;
export const KV_RECENT_MAX_BYTES = 8 * MIB;
/** A page or a batch of a watch ends early when it has this much; it always has one entry. */
export const KV_PAGE_MAX_BYTES = 8 * MIB;
export const KV_WATCH_BATCH_MAX_ENTRIES = 500;
/** How long a removal is remembered, so that an older write that arrives late does not bring back what was removed. */
export const OBJECT_TOMBSTONE_KEEP_MS = 10 * 24 * 3_600_000;
/**
 * Index entries that one page of find or timeline looks at, since nothing else runs on the thread meanwhile: a page may
 * be empty and have a successor.
 */
export const OBJECT_PAGE_EXAMINED_MAX = 64;
export const OBJECT_PAGE_MAX_BYTES = MIB;
/** Entries of indexes that one page compares, at far less cost than an object. */
export const INDEX_ENTRIES_EXAMINED_MAX = 512;
/** Terms whose indexes leave out candidates of the rarest one. */
export const TERMS_COMPARED_MAX = 4;
/** Lists of cell keys that are kept for the entities read next, and how long they may be. */
export const KEY_LISTS_MAX = 1_024;
export const KEY_LIST_KEPT_MAX_BYTES = KIB;
/** Changes that are one action of a write transaction. */
export const CHANGE_SLICE_MAX = 64;
/** Actions of one write transaction run in one turn of the event loop: it takes no more when they have lasted so long. */
export const STORE_WRITE_TURN_MAX_MS = 20;
/** No read begins in a turn of the event loop whose first read is so long ago. */
export const STORE_READ_TURN_MAX_MS = 5;
export const EXPIRY_SWEEP_EVERY_MS = 5_000;
export const EXPIRY_SWEEP_MAX_ENTRIES = 200;
/** Bytes of the text that names the owner of a content. */
export const BLOB_OWNER_MAX_BYTES = KIB;
export const BLOB_STREAM_READ_MAX_BYTES = MIB;
export const BLOB_STREAM_APPEND_MAX_BYTES = 4 * MIB;
/** Appends to streams of a tenant that are under way at once (embedded store): the steps of all end in one turn. */
export const BLOB_STREAM_APPENDS_AT_ONCE_MAX = 16;

// Cluster engine.
/** One attempt within a call: a node that hangs must not eat the whole deadline. */
export const CLUSTER_ATTEMPT_DEADLINE_MS = 4_000;
/** So many requests unanswered in time on one connection, and its node counts as away until it answers a new one. */
export const CLUSTER_SILENT_REQUESTS_MAX = 8;
/** A member of etcd that is silent for so long at a look every so often is left for another. */
export const ETCD_PROBE_INTERVAL_MS = 1_500;
export const ETCD_PROBE_DEADLINE_MS = 2_000;
/** Attempts to connect for the first time, before whoever starts says for what it waits and goes on. */
export const CLUSTER_CONNECT_DEADLINE_MS = 12_000;
export const CLUSTER_HANDSHAKE_DEADLINE_MS = 3_000;
export const CLUSTER_REQUESTS_IN_FLIGHT_MAX = 128;
/**
 * Definitions of tables take 60 ms each on one node, seconds on a ring under load. A node of Cassandra that was away
 * while tables were made asks for them a minute after it is back, or another minute later: until then all wait.
 */
export const CLUSTER_SCHEMA_DEADLINE_MS = 180_000;
export const ETCD_MESSAGE_MAX_BYTES = 64 * MIB;
/** Records that live so long at most, from the time in their ids, have a table of their own. */
export const RECORD_LIFE_DAYS_MAX_MS = 3 * 24 * 3_600_000;
/** The same of those that live longer. What lives still longer, or for ever, has a third table. */
export const RECORD_LIFE_MONTHS_MAX_MS = 100 * 24 * 3_600_000;
/** Removals go to a table for so long after every record of that age has ended there: more than clocks are apart. */
export const RECORD_LIFE_MARGIN_MS = 24 * 3_600_000;
/** Hours of classes of which a controller knows by how many shards it writes them. */
export const RECORD_HOURS_CACHED_MAX = 20_000;
/** What one controller writes into a partition of records before the hour is spread over twice as many. */
export const RECORD_SHARD_BYTES = 16 * MIB;
/** A power of two. */
export const RECORD_SHARDS_MAX = 256;
/** Hours of one class read side by side, where they have few records. */
export const RECORD_HOURS_AT_ONCE = 16;
/** Shards of an hour counted side by side. */
export const RECORD_SHARDS_COUNTED_AT_ONCE = 8;
/** Ranks of different bytes under one id, two of which fit with the removal into the microseconds of a millisecond. */
export const RECORD_RANKS = 499;
/** Records of one partition that are written with one request. */
export const RECORD_BATCH_MAX_ROWS = 64;
export const RECORD_BATCH_MAX_BYTES = 256 * KIB;
/** Partitions of records one page of a timeline looks into before it is handed out short. */
export const TIMELINE_PARTITIONS_PER_PAGE = 64;
/** Powers of two of the partitions a term is spread over, each made for about 4,096 ids. */
export const POSTING_LEVEL_MAX = 10;
/** Terms, or objects by their edges, above level 0 that a controller remembers; of what it forgets it learns again. */
export const BUCKET_LEVELS_KNOWN_MAX = 100_000;
/** After it learned of a level a controller spreads edges by it: further than clocks are apart. */
export const BUCKET_LEVEL_SETTLES_MS = 60_000;
export const POSTING_TERMS_PER_READ = 100;
/** Cassandra warns of batches over more partitions. */
export const POSTINGS_PER_WRITE = 10;
/** Words in one partition of the list of words, before it is split by their next character. */
export const WORD_PARTITION_WORDS = 4_096;
/** One of so many new words has its partition counted. */
export const WORD_SAMPLE_ONE_IN = 256;
/** Partitions of words that one page looks into. */
export const WORD_PARTITIONS_PER_PAGE = 8;
/** Words of a tenant that a controller knows to be listed; others it lists again. */
export const WORDS_KNOWN_MAX = 20_000;
/** Where several terms are compared: fewer rows would tell too little about how frequent they are. */
export const POSTINGS_PER_READ_MIN = 256;
/** A term that is so many times as frequent as the rarest does not narrow it: reading entities in vain costs less. */
export const POSTING_DENSITY_RATIO_MAX = 8;
/** Buckets of one level that a step reads, where those before were nearly empty. */
export const POSTING_BUCKETS_AT_ONCE = 16;
/** Steps through the buckets of a term before a page is handed out short. */
export const POSTING_READS_PER_PAGE_MAX = 64;
/** With more single keys and prefixes than this, a reader on Cassandra gets all cells of an object. */
export const CELLS_CHOSEN_MAX = 16;
/** Entities of one class read by one statement. */
export const ENTITIES_PER_READ = 20;
/** Entities of a class, or records, counted by one statement, which reads times of each. */
export const COUNTED_ROWS_PER_READ = 2_000;
/** Reads of ranges of a table that a page of all of it makes before it is handed out short. */
export const SCAN_READS_PER_PAGE = 16;
/** Reads of rows of edges that a page makes, where they are all of dropped ones, before it is handed out empty. */
export const EDGE_READS_PER_PAGE = 16;
/** Partitions the edges of an object are spread over at first, each way, a power of two. A changed number is a changed format. */
export const EDGE_BUCKETS = 8;
/** Days of versions one page of a history looks into before it is handed out short, and at once. */
export const VERSION_DAYS_PER_PAGE = 64;
export const VERSION_DAYS_AT_ONCE = 8;
/** Earlier versions that a write looks at to give them an end: one, and those that writes before it left undone. */
export const VERSIONS_ENDED_MAX = 4;
/**
 * Marks of removed cells are swept away when they are so old: longer than a call and how far clocks are apart, together.
 */
export const SWEEP_SETTLES_MS = 60_000;
/** A write that is made later than this after its time looks whether that time was swept. */
export const SWEEP_PROMPT_MS = 30_000;
/** One of so many removed cells has its entity swept. */
export const CELL_MARKS_PER_SWEEP = 256;
/** In an entity with more cells a sweep writes no more than so many again for each removed one, on the average. */
export const SWEPT_CELLS_PER_MARK = 4;
/** Partitions of the removed cells of one entity. A changed number is a changed format. */
export const REMOVED_CELL_BUCKETS = 8;
export const REMOVED_CELLS_PER_STATEMENT = 100;
/** Statements of a sweep that go together: one for all cells that end in the same second. A batch has 65,535 at most. */
export const REWRITES_PER_SWEEP_BATCH = 2_000;
/** How often a page looks for more, each time at twice as many, where few of the entities fit. */
export const FIND_ROUNDS_PER_PAGE_MAX = 6;
/** Entities of a range of numbers that are sorted at once, where the engine has no index in order. */
export const ORDERED_WINDOW_ROWS = 500;
/** How often one page chooses such a range. */
export const ORDERED_READS_PER_PAGE_MAX = 6;
/** Entities of one number whose keys are read for a page in order; more come in the order of the driver. */
export const ORDERED_TIED_KEYS_MAX = 50_000;
/** Pages of one read that read these keys: one whose first rows do not pass takes the order of the driver then. */
export const ORDERED_TIED_SCANS_MAX = 4;

// Scrubbing.
/**
 * What is derived is taken away only when it is older than this: longer than a write counts as prompt, the longest call
 * and how far clocks are apart, together.
 */
export const SCRUB_AGE_MIN_MS = 3_600_000;
/** A write that is made or repeated later than this after its time is late: what is derived of it bears the present. */
export const WRITE_LATE_MS = 1_800_000;
/** How long maintenance of one tenant goes on at a time with objects that have ended, or are to end as a whole. */
export const ENDS_MAINTAINED_MS = 20_000;
/** Rows of an index, objects or edges that are looked at together. */
export const SCRUB_PAGE_ROWS = 200;
/** Comparisons with the store at once. */
export const SCRUB_CHECKS_AT_ONCE = 16;
/** Comparisons a second of one tenant, unless its scrub says otherwise, and how many it may say. */
export const SCRUB_RATE_DEFAULT = 2_000;
export const SCRUB_RATE_MAX = 100_000;
/** Bytes of a content that count as one comparison. */
export const SCRUB_BYTES_PER_CHECK = 16 * KIB;
/** What was wrong that is told one by one; the rest is counted. */
export const SCRUB_EXAMPLES_MAX = 50;
/** Between notes of how far a scrub is: as much is looked at again when its controller dies. */
export const SCRUB_PROGRESS_MS = 5_000;
/** A tenant that was not scrubbed for so long is due: less than `OBJECT_TOMBSTONE_KEEP_MS`. */
export const SCRUB_DUE_MS = 7 * 24 * 3_600_000;
/** A round of the row check begins so long after the one before began, or right after its end if it took longer. */
export const ROW_CHECK_EVERY_MS = 8 * 3_600_000;
/** A store whose last whole round ended longer ago is told as late. */
export const ROW_CHECK_LATE_MS = 24 * 3_600_000;
/** A controller that has started begins none for so long: agents return and callers wait then. */
export const ROW_CHECK_AFTER_START_MS = 5 * 60_000;
/** How much of a controller's time row checks take, all stores together. */
export const ROW_CHECK_TIME_SHARE = 0.03;
/** And how long each turn of them rests at least. */
export const ROW_CHECK_REST_MIN_MS = 20;
/** How many rows a turn reads at most: of the embedded store on the thread that answers calls, of Cassandra in one page. */
export const ROW_CHECK_TURN_ROWS = 100;
export const ROW_CHECK_PAGE_ROWS = 500;
export const ROW_CHECK_PAGE_MAX_BYTES = 256 * KIB;
/** How often the place of a round is noted: what is read again after a crash. */
export const ROW_CHECK_NOTE_MS = 30_000;
/** How often a controller may end at one place of a round before that is passed by. */
export const ROW_CHECK_CRASHES_MAX = 3;
/** How many damaged rows of a store are named in its report, and as many in the log. */
export const ROW_CHECK_EXAMPLES_MAX = 20;

// Repairs of what lies on several nodes.
/** A table that was not repaired for so long is due: less than `OBJECT_TOMBSTONE_KEEP_MS`, which removals are remembered. */
export const REPAIR_DUE_MS = 7 * 24 * 3_600_000;
/** The same of tables by which objects are found: what a node missed is not found by those that ask it. */
export const REPAIR_OF_DERIVED_DUE_MS = 3 * 24 * 3_600_000;
/** Between looks of maintenance at the history of repairs. */
export const REPAIR_LOOK_EVERY_MS = 6 * 3_600_000;
/** In one page of the history of repairs. */
export const REPAIRS_PER_READ = 250;
/** Different ranges by which tables of a tenant were repaired, each set of tables by itself, in the history of 30 days. */
export const REPAIRED_RANGES_MAX = 100_000;
