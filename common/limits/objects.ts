/** Limits of classes and objects. */

import { KIB, MIB } from "./units.ts";

// Objects: classes, columns, indexes.
export const CLASSES_PER_TENANT_MAX = 5_000;
/** Including inherited columns. */
export const COLUMNS_PER_CLASS_MAX = 500;
export const CLASS_PATH_MAX_BYTES = 512;
export const CLASS_DEPTH_MAX = 16;
export const COLUMN_NAME_MAX_CHARACTERS = 128;
export const EDGE_TYPES_MAX = 1_000;
export const EDGE_TYPE_NAME_MAX_CHARACTERS = 128;
/** Edges of one type from one object that one statement may name or clear. */
export const EDGES_PER_WRITE_MAX = 10_000;
/** Edges to removed objects that a call deletes itself; more are deleted in the background. */
export const EDGES_ENDED_IN_CALL_MAX = 2_000;
/** Objects whose edges one background task deletes. */
export const EDGE_ENDING_TARGETS_MAX = 100;
/** Waiting background tasks of one tenant per controller. A call that adds more waits for its own. */
export const EDGE_ENDINGS_WAITING_MAX = 100;
/** Maximum lead over the clock of the time that a write of an entity sets (`AT`). A later time is refused. */
export const WRITE_AHEAD_MAX_MS = 5 * 60_000;
/** Objects ahead of the clock that one call returns. */
export const AHEAD_PAGE_OBJECTS = 200;
/** Objects ahead of the clock that `odp ahead` lists. */
export const AHEAD_LISTED_MAX = 10_000;
/** Objects ahead of the clock whose latest time one controller remembers per tenant. */
export const WRITE_AHEAD_OBJECTS_MAX = 10_000;
/** Objects whose edges are read in parallel for one call, one page at a time each. */
export const EDGE_READS_IN_FLIGHT_MAX = 32;
/** Edges of one object that a read at an earlier time holds in memory. */
export const EDGES_AS_OF_MAX = 100_000;
/** Objects whose edges at an earlier time are read in parallel for one call. */
export const EDGES_AS_OF_IN_FLIGHT_MAX = 8;
/** Objects whose versions are read in parallel for one call. */
export const HISTORY_READS_IN_FLIGHT_MAX = 32;
/** Part of `TERMS_PER_OBJECT_MAX` for words of the full text. An object with more is marked and always rechecked. */
export const WORDS_PER_OBJECT_MAX = 1_000;
/** Part of `TERMS_PER_OBJECT_MAX` for values of indexed columns, including each element of sets, lists and maps. */
export const INDEXED_VALUES_PER_OBJECT_MAX = 900;
/** `IN` with more values is evaluated by filtering. */
export const INDEX_UNION_MAX = 64;
/** In smaller classes, reading in the order of an index is not worth it. */
export const ORDERED_CLASS_MIN = 1_000;
/** Minimum number of objects that such a read examines before it gives up. */
export const ORDERED_EXAMINED_MIN = 512;
/** The number when the size of the class is unknown. */
export const ORDERED_EXAMINED_MAX = 20_000;
/** Parts of a class tree that are read in parallel in one order. */
export const ORDERED_FINDS_MAX = 16;
/** Words in one full-text condition. */
export const TEXT_WORDS_MAX = 200;
/** Words in one full-text condition that looks for similar words. */
export const FUZZY_WORDS_MAX = 16;
/** The words of longer texts are not cached; each condition splits the text again. */
export const TEXT_REMEMBERED_MAX_CHARACTERS = 1_048_576;
/** Words of one search that are looked up in the index; the caller checks the others. */
export const SEARCH_WORDS_MAX = 16;
/** Indexed words that a pattern such as `web*` may match. With more matches every object is checked. */
export const WORD_PATTERN_WORDS_MAX = 48;
/** Indexed words that are examined for a pattern even if there are few objects. */
export const WORD_PATTERN_EXAMINED_ALWAYS = 20_000;
/**
 * Words examined per object that would be read otherwise, because a word costs far less than an object. If the store
 * does not keep the number of objects, the lower bound of its count is used.
 */
export const WORD_PATTERN_EXAMINED_PER_OBJECT = 4;
export const WORD_PATTERN_EXAMINED_MAX = 4_000_000;
/** Pages read for a pattern in addition to those that its words fill, because pages of a cluster may be short. */
export const WORD_PATTERN_SHORT_PAGES_MAX = 20;
/** Classes of records whose words are examined for one pattern. */
export const WORD_PATTERN_CLASSES_MAX = 4;
/** Rows per page of merged timelines. A class tree with many record classes reads smaller pages. */
export const TIMELINE_PAGE_ROWS = 500;
/** Minimum of `versionttl`. */
export const VERSION_TTL_MIN_SECONDS = 60;
/** Time by which versions outlive the class's setting; more than clocks differ. */
export const VERSION_END_LATE_MS = 60_000;
/**
 * Lease of a catalog. A catalog that cannot renew it stops writing, and a change of definitions waits this long for a
 * dead controller.
 */
export const CATALOG_LEASE_MS = 8_000;
/** Controllers that serve one tenant. Each has its own residue of write times modulo this number. */
export const CATALOG_FOLLOWERS_MAX = 256;
/** Longer than the lease: a controller that has not acknowledged by then is dead, or alive and stuck. */
export const CATALOG_ACKNOWLEDGE_DEADLINE_MS = 10_000;
/** Losses of the definitions during one write, after which the write is left unconfirmed. */
export const CATALOG_CONFIRM_ATTEMPTS_MAX = 8;
/** Attempts of one write to add words again that another controller may have removed. */
export const SHARED_TERMS_ATTEMPTS_MAX = 16;
/** Objects added to a new index between two records of its progress. */
export const INDEX_FILL_PAGE_ROWS = 200;
/** Objects counted per page before that. */
export const INDEX_COUNT_PAGE_ROWS = 1_000;
/** Time that a read-modify-write of an object waits for other controllers that do the same. */
export const OBJECT_TURN_WAIT_MS = 20_000;
/** Time a call waits for definitions that must be read again. */
export const CATALOG_RESUME_DEADLINE_MS = 5_000;
export const CATALOG_RETRY_MS = 250;
export const CATALOG_CHANGE_ATTEMPTS_MAX = 32;
export const STORE_ATTEMPTS_MAX = 6;
export const STORE_RETRY_MIN_MS = 10;
/** Durable subscriptions per tenant to changes of objects, and classes that one subscription may name. */
export const CHANGE_SUBSCRIPTIONS_MAX = 100;
export const CHANGE_SUBSCRIPTION_CLASSES_MAX = 1_000;
export const CHANGE_SUBSCRIPTION_NAME_MAX_CHARACTERS = 128;
/** If a controller does not renew its lease for this long, other controllers deliver its pending events. */
export const CHANGE_LEASE_MS = 8_000;
/** Stored events that subscribers have not taken. Beyond this, writes that would produce events are refused. */
export const CHANGE_EVENTS_WAITING_MAX = 10_000;
/** Events per delivery; more only if one write has more. */
export const CHANGE_DELIVERY_EVENTS = 1_000;
export const CHANGE_DELIVERY_DEADLINE_MS = 8_000;
export const CHANGE_DELIVERY_AGAIN_MIN_MS = 100;
export const CHANGE_DELIVERY_AGAIN_MAX_MS = 10_000;
export const CHANGE_PAGE_INTENTS = 100;
/** Interval at which queues of dead controllers are looked for, in case the notice of their end was lost. */
export const CHANGE_TAKEOVER_INTERVAL_MS = 10_000;
/** Intents that no controller takes for this long are deleted. */
export const CHANGE_INTENT_KEEP_MS = 30 * 24 * 3_600_000;
export const TRIGGERS_PER_CLASS_MAX = 100;
export const TRIGGERS_PER_TENANT_MAX = 1_000;
export const TRIGGER_NAME_MAX_CHARACTERS = 128;
/** Triggers that may cause each other in one chain. A write of the last of them is refused. */
export const TRIGGER_CHAIN_STEPS_MAX = 16;
export const TRIGGER_TEXT_MAX_BYTES = 64 * 1_024;
/** Time of one run, including waits for a thread and for host calls. */
export const TRIGGER_RUN_MAX_MS = 10_000;
/** Failed runs for one change before it is set aside. */
export const TRIGGER_ATTEMPTS_MAX = 5;
export const TRIGGER_AGAIN_MIN_MS = 100;
export const TRIGGER_AGAIN_MAX_MS = 2_000;
/**
 * Events in outboxes of other controllers that are examined before a trigger takes changes. If more wait, changes of
 * one object at two controllers may run out of order; the limit keeps a full outbox from slowing down all others.
 */
export const CHANGE_FOREIGN_EVENTS_MAX = 2_000;
/**
 * Changes that triggers take together; more only if one write has more. The next ones wait until these are run or
 * stored.
 */
export const TRIGGER_EVENTS_AT_ONCE = 100;
/**
 * Parallel runs of one trigger, each for another object, including runs that wait for threads of the trigger's author.
 */
export const TRIGGER_RUNS_AT_ONCE = 16;
/** Time a change waits for earlier changes of its object at another controller; these may never have been made. */
export const TRIGGER_ORDER_WAIT_MS = 120_000;
/** Objects whose earlier changes one read looks for. */
export const TRIGGER_ORDER_OBJECTS = 100;
/** Time for which one slow trigger may hold up changes for other triggers. Then its waiting changes are set aside. */
export const TRIGGER_PATIENCE_MS = 3_000;
/** Changes in memory that wait for one trigger. More are set aside, and taken up when half of these are done. */
export const TRIGGER_WAITING_MAX = 1_000;
export const TRIGGER_ASIDE_TTL_DAYS = 30;
/** Lines of a run's log (one more line counts the others), and characters per line. */
export const TRIGGER_LOG_LINES_MAX = 100;
export const TRIGGER_LOG_LINE_MAX_CHARACTERS = 4_000;
/** Runs whose lines are being written. */
export const TRIGGER_LOG_RUNS_MAX = 1_000;
/** Interval at which a trigger that is stopped because of its author is reported. */
export const TRIGGER_STOPPED_TOLD_MS = 60_000;
/** Elements of a set, list or map in one attribute. */
export const COLLECTION_ELEMENTS_MAX = 10_000;
/** Longer elements and map keys are stored under their hash. */
export const ELEMENT_NAME_MAX_BYTES = 200;

// Cached variables and collections (`appcontext`).
export const APPCONTEXT_NAME_MAX_BYTES = 256;
export const APPCONTEXT_TEXT_MAX_BYTES = MIB - KIB;
export const APPCONTEXT_ITEM_MAX_BYTES = 256 * KIB;
export const APPCONTEXT_TTL_MAX_SECONDS = 10 * 365 * 24 * 3_600;
/** Items of one list answer, which are sorted in one go. */
export const APPCONTEXT_LIST_MAX_ITEMS = 20_000;
/** Bytes of items that all lists of one tenant hold until they are sent. */
export const APPCONTEXT_LISTS_MAX_BYTES = 64 * MIB;
/** Items per read. */
export const APPCONTEXT_PAGE_ITEMS = 256;

// Extension tables. A table is one value of the KvStore.
export const TABLE_NAME_MAX_BYTES = 512;
export const TABLES_PER_TENANT_MAX = 256;
export const TABLE_ROWS_MAX = 20_000;
/** A table's rows as JSON; less than `KV_VALUE_MAX_BYTES`. */
export const TABLE_MAX_BYTES = MIB - KIB;
/** Body with blanks and escapes, more than the rows need as JSON. */
export const TABLE_BODY_MAX_BYTES = 4 * MIB;
/** Attempts of one change; each attempt starts from what another controller has just written. */
export const TABLE_CHANGE_ATTEMPTS_MAX = 16;

// Tags. All trees of a tenant are one value of the KvStore.
export const TAG_DOMAIN_MAX_BYTES = 128;
/** Bytes of a tag's whole path, so that none of its terms is cut. */
export const TAG_PATH_MAX_BYTES = 240;
export const TAG_DEPTH_MAX = 16;
/** Tags of all domains, including tags above others. */
export const TAGS_PER_TENANT_MAX = 20_000;
/** All trees as JSON; less than `KV_VALUE_MAX_BYTES`. */
export const TAG_TREES_MAX_BYTES = MIB - KIB;
/** Attempts of one change; each attempt starts from what another controller has just written. */
export const TAG_CHANGE_ATTEMPTS_MAX = 16;
/** Tags, and ids of objects, in one call that adds or removes tags. */
export const TAGS_PER_CALL_MAX = 100;
export const TAGGED_IDS_PER_CALL_MAX = 1_000;
/** Open moves and removals of tags per tenant. */
export const TAG_MOVES_OPEN_MAX = 16;
/** Objects that a move writes in parallel. */
export const TAG_MOVE_WRITES_AT_ONCE = 32;
/** Passes of a move. Each finds objects that got the old tag during the previous pass. */
export const TAG_MOVE_PASSES_MAX = 16;
/** Objects that refuse the new tag. With more of them the move ends. */
export const TAG_MOVE_REFUSED_MAX = 1_000;
/** Attempts of a move while the stores are unavailable. Then it pauses until maintenance continues it. */
export const TAG_MOVE_ATTEMPTS = 5;
export const TAG_MOVE_RETRY_MS = 500;
/** Minimum interval between two records of a move's progress. */
export const TAG_MOVE_PROGRESS_MS = 1_000;
/** Time a call waits for its move; less than `HTTP_CALL_DEADLINE_MS`. */
export const TAG_MOVE_ANSWER_MS = 100_000;
export const TAG_MOVE_RECORD_TTL_DAYS = 90;
