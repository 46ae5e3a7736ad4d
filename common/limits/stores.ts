/** Limits of the stores: the seams, then each engine. */

import { KIB, MIB } from "./units.ts";

// Key-value store. Both engines keep the same limits; they are etcd's, made round.
export const KV_KEY_MAX_BYTES = KIB;
export const KV_VALUE_MAX_BYTES = MIB;
/** etcd takes 128 operations, including those that are added around the given ones. */
export const KV_TXN_MAX_OPERATIONS = 120;
export const KV_PAGE_MAX_ENTRIES = 1_000;
export const KV_LEASE_MIN_MS = 1_000;
export const KV_LEASE_MAX_MS = 24 * 3_600_000;
/** Interval and batch size of the sweep that finds expired entries which are not read. */
export const KV_SWEEP_EVERY_MS = 15_000;
export const KV_SWEEP_MAX_ENTRIES = 200;

// Object store.
export const OBJECT_ID_MAX_BYTES = KIB;
export const OBJECT_MAX_BYTES = 4 * MIB;
export const CELL_MAX_BYTES = MIB;
/** Longer terms are cut. Therefore a condition on a term is always rechecked on the value. */
export const TERM_MAX_BYTES = KIB;
export const TERMS_PER_OBJECT_MAX = 2_000;
/**
 * Latest removals of terms that the embedded engine remembers per entity; at most those of four changes. If there were
 * more, a late repeated write adds terms that the entity does not have: readers recheck terms, and a scrub removes
 * them.
 */
export const REMOVED_TERMS_KEPT_MAX = 4 * TERMS_PER_OBJECT_MAX;
export const FIND_TERMS_MAX = 255;
export const OBJECT_PAGE_MAX = 1_000;
export const CHANGE_BATCH_MAX = 1_000;
/** Columns of numbers and times with range indexes, in a class and all classes above and below it. */
export const RANGE_SLOTS = 16;
/** Numeric index columns of every stored object; slot 0 is the object's version time. */
export const NUMBER_SLOTS = 1 + RANGE_SLOTS;

// Blob store.
export const BLOB_CHUNK_MAX_BYTES = MIB;
export const BLOB_MAX_BYTES = 8_192 * MIB;
/** The embedded engine stores a content of at most this size in a row, a larger one in a file. */
export const BLOB_ROW_MAX_BYTES = 32 * KIB;

// Embedded store.
/** Faults of one store that its check lists one by one; all are counted. */
export const CHECK_FAULTS_SHOWN_MAX = 50;
/** With less free space than this, an incomplete write means a full disk, not a broken one. */
export const DISK_FULL_BELOW_BYTES = MIB;
/** Changes kept for watchers. A watcher that is further behind must list again. */
export const KV_LOG_MAX_ENTRIES = 10_000;
export const KV_LOG_MAX_BYTES = 64 * MIB;
/** The latest of these changes, kept in memory for watches that keep up. */
export const KV_RECENT_MAX_ENTRIES = 4_000;
export const KV_RECENT_MAX_BYTES = 8 * MIB;
/** A page, or a batch of a watch, ends at this size. It always has at least one entry. */
export const KV_PAGE_MAX_BYTES = 8 * MIB;
export const KV_WATCH_BATCH_MAX_ENTRIES = 500;
/**
 * Time for which a removal is remembered, so that an older write that arrives late does not bring back the removed
 * data.
 */
export const OBJECT_TOMBSTONE_KEEP_MS = 10 * 24 * 3_600_000;
/**
 * Index entries that one page of find or timeline examines, because nothing else runs on the thread then. A page
 * may be empty and have a successor.
 */
export const OBJECT_PAGE_EXAMINED_MAX = 64;
export const OBJECT_PAGE_MAX_BYTES = MIB;
/** Index entries that one page compares, at far lower cost than an object. */
export const INDEX_ENTRIES_EXAMINED_MAX = 512;
/** Terms whose indexes are used to exclude candidates of the rarest term. */
export const TERMS_COMPARED_MAX = 4;
/** Lists of cell keys cached for the entities read next, and bytes of each. */
export const KEY_LISTS_MAX = 1_024;
export const KEY_LIST_KEPT_MAX_BYTES = KIB;
/** Changes per action of a write transaction. */
export const CHANGE_SLICE_MAX = 64;
/** Time for actions of one write transaction in one turn of the event loop; after it no more begin in that turn. */
export const STORE_WRITE_TURN_MAX_MS = 20;
/** Time after the first read of a turn of the event loop from which no more reads begin in it. */
export const STORE_READ_TURN_MAX_MS = 5;
export const EXPIRY_SWEEP_EVERY_MS = 5_000;
export const EXPIRY_SWEEP_MAX_ENTRIES = 200;
/** Bytes of a content owner's name. */
export const BLOB_OWNER_MAX_BYTES = KIB;
export const BLOB_STREAM_READ_MAX_BYTES = MIB;
export const BLOB_STREAM_APPEND_MAX_BYTES = 4 * MIB;
/** Concurrent appends to streams of a tenant (embedded store); the steps of all of them end in one turn. */
export const BLOB_STREAM_APPENDS_AT_ONCE_MAX = 16;

// Cluster engine.
/** Deadline of one attempt within a call: a hanging node must not use up the whole deadline. */
export const CLUSTER_ATTEMPT_DEADLINE_MS = 4_000;
/** Late requests on one connection, after which its node counts as unavailable until it answers a new connection. */
export const CLUSTER_SILENT_REQUESTS_MAX = 8;
/** Interval and deadline of the probes of an etcd member. A member that misses it is left for another one. */
export const ETCD_PROBE_INTERVAL_MS = 1_500;
export const ETCD_PROBE_DEADLINE_MS = 2_000;
/** Time for the first attempts to connect. After it the starting program reports what it waits for, and continues. */
export const CLUSTER_CONNECT_DEADLINE_MS = 12_000;
export const CLUSTER_HANDSHAKE_DEADLINE_MS = 3_000;
export const CLUSTER_REQUESTS_IN_FLIGHT_MAX = 128;
/**
 * Creating a table takes 60 ms on one node, and seconds on a loaded ring. A Cassandra node that missed the creation of
 * tables asks for them a minute after its return, or another minute later. Until then all wait.
 */
export const CLUSTER_SCHEMA_DEADLINE_MS = 180_000;
export const ETCD_MESSAGE_MAX_BYTES = 64 * MIB;
/** Records with at most this lifetime, counted from the time in their ids, have their own table. */
export const RECORD_LIFE_DAYS_MAX_MS = 3 * 24 * 3_600_000;
/** The same for a second table. Records with a longer or unlimited lifetime have a third table. */
export const RECORD_LIFE_MONTHS_MAX_MS = 100 * 24 * 3_600_000;
/**
 * Time for which removals still go to a table after every record of that age has expired there; more than clocks
 * differ.
 */
export const RECORD_LIFE_MARGIN_MS = 24 * 3_600_000;
/** Hours of classes for which a controller caches the number of shards. */
export const RECORD_HOURS_CACHED_MAX = 20_000;
/**
 * Bytes that one controller writes into a partition of records before the hour is spread over twice as many partitions.
 */
export const RECORD_SHARD_BYTES = 16 * MIB;
/** A power of two. */
export const RECORD_SHARDS_MAX = 256;
/** Hours of one class read in parallel if they have few records. */
export const RECORD_HOURS_AT_ONCE = 16;
/** Shards of an hour counted in parallel. */
export const RECORD_SHARDS_COUNTED_AT_ONCE = 8;
/** Ranks that order different bytes under one id. Two times per rank, and the removal, fit into one millisecond. */
export const RECORD_RANKS = 499;
/** Records of one partition written by one request. */
export const RECORD_BATCH_MAX_ROWS = 64;
export const RECORD_BATCH_MAX_BYTES = 256 * KIB;
/** Partitions of records that one page of a timeline reads before it is returned short. */
export const TIMELINE_PARTITIONS_PER_PAGE = 64;
/**
 * Highest level of a term: it is spread over up to 2 to the power of this number of partitions, each for about 4,096
 * ids.
 */
export const POSTING_LEVEL_MAX = 10;
/** Terms, and objects with edges, above level 0 that a controller remembers; it relearns forgotten ones. */
export const BUCKET_LEVELS_KNOWN_MAX = 100_000;
/** Time after learning a level until a controller spreads edges by it; more than clocks differ. */
export const BUCKET_LEVEL_SETTLES_MS = 60_000;
export const POSTING_TERMS_PER_READ = 100;
/** Cassandra warns of batches over more partitions. */
export const POSTINGS_PER_WRITE = 10;
/** Words in one partition of the list of words before it is split by their next character. */
export const WORD_PARTITION_WORDS = 4_096;
/** The partition is counted for one of this many new words. */
export const WORD_SAMPLE_ONE_IN = 256;
/** Partitions of words that one page reads. */
export const WORD_PARTITIONS_PER_PAGE = 8;
/** Words of a tenant that a controller knows to be listed; it lists others again. */
export const WORDS_KNOWN_MAX = 20_000;
/** Minimum rows per read when several terms are compared: fewer would not show how frequent they are. */
export const POSTINGS_PER_READ_MIN = 256;
/**
 * A term this many times as frequent as the rarest is not used for narrowing, because reading entities in vain costs
 * less.
 */
export const POSTING_DENSITY_RATIO_MAX = 8;
/** Buckets of one level that a step reads if the previous ones were nearly empty. */
export const POSTING_BUCKETS_AT_ONCE = 16;
/** Steps through the buckets of a term before a page is returned short. */
export const POSTING_READS_PER_PAGE_MAX = 64;
/** With more single keys and prefixes than this, a reader on Cassandra gets all cells of an object. */
export const CELLS_CHOSEN_MAX = 16;
/** Entities of one class per statement. */
export const ENTITIES_PER_READ = 20;
/** Entities of a class, or records, counted per statement, which reads the times of each. */
export const COUNTED_ROWS_PER_READ = 2_000;
/** Reads of token ranges per page of a full table scan before it is returned short. */
export const SCAN_READS_PER_PAGE = 16;
/** Reads of rows of edges per page before it is returned empty, if all rows are dropped edges. */
export const EDGE_READS_PER_PAGE = 16;
/**
 * Initial number of partitions of an object's edges in each direction, a power of two. Changing it changes the format.
 */
export const EDGE_BUCKETS = 8;
/** Days of versions that one page of a history reads before it is returned short, and days read in parallel. */
export const VERSION_DAYS_PER_PAGE = 64;
export const VERSION_DAYS_AT_ONCE = 8;
/** Earlier versions that a write examines to give them an end: one, plus those that earlier writes left without one. */
export const VERSIONS_ENDED_MAX = 4;
/**
 * Age at which marks of removed cells are swept; more than the duration of a call and the difference of clocks
 * together.
 */
export const SWEEP_SETTLES_MS = 60_000;
/** A write that is made later than this after its time checks whether that time was swept. */
export const SWEEP_PROMPT_MS = 30_000;
/** One in this many removed cells causes a sweep of its entity. */
export const CELL_MARKS_PER_SWEEP = 256;
/** In an entity with more cells, a sweep rewrites on average at most this many cells per removed one. */
export const SWEPT_CELLS_PER_MARK = 4;
/** Partitions of the removed cells of one entity. Changing it changes the format. */
export const REMOVED_CELL_BUCKETS = 8;
export const REMOVED_CELLS_PER_STATEMENT = 100;
/** Statements of a sweep per batch: one for all cells that end in the same second. A batch has at most 65,535. */
export const REWRITES_PER_SWEEP_BATCH = 2_000;
/** Rounds in which a page searches further, each time for twice as many, if few of the entities match. */
export const FIND_ROUNDS_PER_PAGE_MAX = 6;
/** Entities of a range of numbers that are sorted together, where the engine has no ordered index. */
export const ORDERED_WINDOW_ROWS = 500;
/** Number of times that one page chooses such a range. */
export const ORDERED_READS_PER_PAGE_MAX = 6;
/**
 * Entities of one number whose keys are read and sorted for a page in order. If there are more, their order is that of
 * the driver.
 */
export const ORDERED_TIED_KEYS_MAX = 50_000;
/** Pages of one read that read these keys. Later pages take the order of the driver. */
export const ORDERED_TIED_SCANS_MAX = 4;

// Scrubbing.
/**
 * Minimum age of derived data before a scrub removes it. More than the time in which a write counts as prompt, the
 * longest call and the difference of clocks together.
 */
export const SCRUB_AGE_MIN_MS = 3_600_000;
/** A write made or repeated later than this after its time is late: the data derived from it gets the current time. */
export const WRITE_LATE_MS = 1_800_000;
/**
 * Time that one round of a tenant's maintenance spends on objects with a ttl: it removes those that have expired, and
 * gives objects of earlier versions one end for all their parts.
 */
export const ENDS_MAINTAINED_MS = 20_000;
/** Rows of an index, objects or edges examined together. */
export const SCRUB_PAGE_ROWS = 200;
/** Parallel comparisons with the store. */
export const SCRUB_CHECKS_AT_ONCE = 16;
/** Comparisons per second of a scrub of one tenant: default and maximum. */
export const SCRUB_RATE_DEFAULT = 2_000;
export const SCRUB_RATE_MAX = 100_000;
/** Bytes of a content that count as one comparison. */
export const SCRUB_BYTES_PER_CHECK = 16 * KIB;
/** Faults that are listed one by one; the others are counted. */
export const SCRUB_EXAMPLES_MAX = 50;
/** Interval between two records of a scrub's progress. This much is examined again if its controller dies. */
export const SCRUB_PROGRESS_MS = 5_000;
/** A tenant that was not scrubbed for this long is due; less than `OBJECT_TOMBSTONE_KEEP_MS`. */
export const SCRUB_DUE_MS = 7 * 24 * 3_600_000;
/**
 * Interval between the beginnings of two rounds of the row check. A longer round is followed by the next one at once.
 */
export const ROW_CHECK_EVERY_MS = 8 * 3_600_000;
/** A store is reported as late if its last complete round ended longer ago. */
export const ROW_CHECK_LATE_MS = 24 * 3_600_000;
/** Time after its start in which a controller begins no round, because agents return and callers wait then. */
export const ROW_CHECK_AFTER_START_MS = 5 * 60_000;
/** Fraction of a controller's time that row checks take, all stores together. */
export const ROW_CHECK_TIME_SHARE = 0.03;
/** Minimum pause after each turn. */
export const ROW_CHECK_REST_MIN_MS = 20;
/** Rows per turn: of the embedded store, which runs on the thread that answers calls, and of Cassandra, in one page. */
export const ROW_CHECK_TURN_ROWS = 100;
export const ROW_CHECK_PAGE_ROWS = 500;
export const ROW_CHECK_PAGE_MAX_BYTES = 256 * KIB;
/** Interval at which the position of a round is recorded. This much is read again after a crash. */
export const ROW_CHECK_NOTE_MS = 30_000;
/** Crashes of controllers at one position of a round before that position is skipped. */
export const ROW_CHECK_CRASHES_MAX = 3;
/** Damaged rows of a store that its report lists, and the same number in the log. */
export const ROW_CHECK_EXAMPLES_MAX = 20;

// Repairs of tables that are replicated on several nodes.
/**
 * A table that was not repaired for this long is due; less than `OBJECT_TOMBSTONE_KEEP_MS`, the time removals are kept.
 */
export const REPAIR_DUE_MS = 7 * 24 * 3_600_000;
/** The same for tables by which objects are found: a node does not find what it missed. */
export const REPAIR_OF_DERIVED_DUE_MS = 3 * 24 * 3_600_000;
/** Interval at which maintenance looks at the history of repairs. */
export const REPAIR_LOOK_EVERY_MS = 6 * 3_600_000;
/** Rows per page of the history of repairs. */
export const REPAIRS_PER_READ = 250;
/** Different ranges in 30 days of repair history of a tenant's tables; each set of tables counts separately. */
export const REPAIRED_RANGES_MAX = 100_000;
