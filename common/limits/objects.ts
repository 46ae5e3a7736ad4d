/** Limits of classes and objects. */

import { KIB, MIB } from "./units.ts";

// Objects: classes, columns, indexes.
export const CLASSES_PER_TENANT_MAX = 5_000;
/** With the inherited ones. */
export const COLUMNS_PER_CLASS_MAX = 500;
export const CLASS_PATH_MAX_BYTES = 512;
export const CLASS_DEPTH_MAX = 16;
export const COLUMN_NAME_MAX_CHARACTERS = 128;
export const EDGE_TYPES_MAX = 1_000;
export const EDGE_TYPE_NAME_MAX_CHARACTERS = 128;
/** Edges of one type from one object that one statement may name or clear. */
export const EDGES_PER_WRITE_MAX = 10_000;
/** Edges to objects that one call removes which it takes away itself; beyond that they go in the background. */
export const EDGES_ENDED_IN_CALL_MAX = 2_000;
/** Objects whose edges are taken away in the background as one piece of work. */
export const EDGE_ENDING_TARGETS_MAX = 100;
/** Such pieces of one tenant that wait at one controller; a call that adds more waits for its own. */
export const EDGE_ENDINGS_WAITING_MAX = 100;
/** How far ahead of the clock a time may be that a write of an entity brings (`AT`); a later one is refused. */
export const WRITE_AHEAD_MAX_MS = 5 * 60_000;
/** Objects ahead of the clock that one call tells. */
export const AHEAD_PAGE_OBJECTS = 200;
/** Objects ahead of the clock that `odp ahead` lists at most. */
export const AHEAD_LISTED_MAX = 10_000;
/** Objects ahead of the clock whose latest time one controller keeps in mind for a tenant. */
export const WRITE_AHEAD_OBJECTS_MAX = 10_000;
/** Objects whose edges are read at once for one call, each a page at a time. */
export const EDGE_READS_IN_FLIGHT_MAX = 32;
/** Edges of one object that a read of an earlier time keeps in memory. */
export const EDGES_AS_OF_MAX = 100_000;
/** Objects whose edges of an earlier time are read at once for one call. */
export const EDGES_AS_OF_IN_FLIGHT_MAX = 8;
/** Objects whose versions are read at once for one call. */
export const HISTORY_READS_IN_FLIGHT_MAX = 32;
/**
 * The share of `TERMS_PER_OBJECT_MAX` for words of the full text; an object with more is marked and always rechecked.
 */
export const WORDS_PER_OBJECT_MAX = 1_000;
/** The share of `TERMS_PER_OBJECT_MAX` for values of indexed columns, with each element of sets, lists and maps. */
export const INDEXED_VALUES_PER_OBJECT_MAX = 900;
/** `IN` with more values is answered by filtering. */
export const INDEX_UNION_MAX = 64;
/** In smaller classes a read in the order of an index saves nothing. */
export const ORDERED_CLASS_MIN = 1_000;
/** Objects that such a read looks at, at least, before it is given up. */
export const ORDERED_EXAMINED_MIN = 512;
/** The same where it is not known how many there are. */
export const ORDERED_EXAMINED_MAX = 20_000;
/** Parts of a class tree that are read side by side in one order. */
export const ORDERED_FINDS_MAX = 16;
/** Words that one full-text condition may look for. */
export const TEXT_WORDS_MAX = 200;
/** The same of one that looks for similar words. */
export const FUZZY_WORDS_MAX = 16;
/** Texts that are longer are cut into words anew by each condition. */
export const TEXT_REMEMBERED_MAX_CHARACTERS = 1_048_576;
/** The words of one search that are looked up in the index; the caller checks the others. */
export const SEARCH_WORDS_MAX = 16;
/** Words that a pattern such as `web*` may stand for in the index; with more of them every object is asked. */
export const WORD_PATTERN_WORDS_MAX = 48;
/** Words of the index that are looked at for a pattern, however few objects there are. */
export const WORD_PATTERN_EXAMINED_ALWAYS = 20_000;
/**
 * For each object that would be read otherwise so many words are looked at: a word costs a small part of what an object
 * does. Of objects whose number the store does not keep the first part of their count is taken.
 */
export const WORD_PATTERN_EXAMINED_PER_OBJECT = 4;
export const WORD_PATTERN_EXAMINED_MAX = 4_000_000;
/** Pages that are read for a pattern beyond those that its words fill: those of a cluster may be short. */
export const WORD_PATTERN_SHORT_PAGES_MAX = 20;
/** Classes of records whose words are looked at for one pattern. */
export const WORD_PATTERN_CLASSES_MAX = 4;
/** Timelines that are merged at once; a class tree with more record classes reads smaller pages. */
export const TIMELINE_PAGE_ROWS = 500;
/** The shortest `versionttl`. */
export const VERSION_TTL_MIN_SECONDS = 60;
/** Versions outlive what the class says by so much: more than clocks are apart. */
export const VERSION_END_LATE_MS = 60_000;
/**
 * A catalog that cannot keep its lease for this long stops writing; a change of definitions waits this long for a dead
 * controller.
 */
export const CATALOG_LEASE_MS = 8_000;
/** Controllers that serve one tenant. Times of writes have this many residues, one for each of them. */
export const CATALOG_FOLLOWERS_MAX = 256;
/** Longer than the lease: a controller that has not acknowledged by then is dead, or alive and stuck. */
export const CATALOG_ACKNOWLEDGE_DEADLINE_MS = 10_000;
/** How often the definitions may be lost during one write before it is left unconfirmed. */
export const CATALOG_CONFIRM_ATTEMPTS_MAX = 8;
/** How often words that another controller may have dropped are added again for one write. */
export const SHARED_TERMS_ATTEMPTS_MAX = 16;
/** Objects that are brought into a new index between two notes of how far that has got. */
export const INDEX_FILL_PAGE_ROWS = 200;
/** Objects that are counted at once before that. */
export const INDEX_COUNT_PAGE_ROWS = 1_000;
/** How long a write that follows from what it reads waits for other controllers that do the same with the object. */
export const OBJECT_TURN_WAIT_MS = 20_000;
/** How long a call waits for definitions that have to be read anew. */
export const CATALOG_RESUME_DEADLINE_MS = 5_000;
export const CATALOG_RETRY_MS = 250;
export const CATALOG_CHANGE_ATTEMPTS_MAX = 32;
export const STORE_ATTEMPTS_MAX = 6;
export const STORE_RETRY_MIN_MS = 10;
/** Durable subscriptions of changes of objects in one tenant, and classes that one may name. */
export const CHANGE_SUBSCRIPTIONS_MAX = 100;
export const CHANGE_SUBSCRIPTION_CLASSES_MAX = 1_000;
export const CHANGE_SUBSCRIPTION_NAME_MAX_CHARACTERS = 128;
/** When a controller does not keep its lease for this long, other controllers deliver its pending events. */
export const CHANGE_LEASE_MS = 8_000;
/** Events stored and not yet taken by their subscribers. Beyond this, writes that would produce events are refused. */
export const CHANGE_EVENTS_WAITING_MAX = 10_000;
/** Events delivered in one batch, or all those of one write. */
export const CHANGE_DELIVERY_EVENTS = 1_000;
export const CHANGE_DELIVERY_DEADLINE_MS = 8_000;
export const CHANGE_DELIVERY_AGAIN_MIN_MS = 100;
export const CHANGE_DELIVERY_AGAIN_MAX_MS = 10_000;
export const CHANGE_PAGE_INTENTS = 100;
/** The interval at which the queues of dead controllers are looked for, in case the notice of their end was lost. */
export const CHANGE_TAKEOVER_INTERVAL_MS = 10_000;
/** Intents that no controller takes for this long are deleted. */
export const CHANGE_INTENT_KEEP_MS = 30 * 24 * 3_600_000;
export const TRIGGERS_PER_CLASS_MAX = 100;
export const TRIGGERS_PER_TENANT_MAX = 1_000;
export const TRIGGER_NAME_MAX_CHARACTERS = 128;
/** Triggers that may run one by the other: a write that the last of them makes is refused. */
export const TRIGGER_CHAIN_STEPS_MAX = 16;
export const TRIGGER_TEXT_MAX_BYTES = 64 * 1_024;
/** One run, waiting for a thread and for host calls included. */
export const TRIGGER_RUN_MAX_MS = 10_000;
/** Runs after a change of which none succeeded; then the change is set aside. */
export const TRIGGER_ATTEMPTS_MAX = 5;
export const TRIGGER_AGAIN_MIN_MS = 100;
export const TRIGGER_AGAIN_MAX_MS = 2_000;
/**
 * Events in the outboxes of other controllers that are looked at before a trigger takes changes: where more wait, changes
 * of one object at two controllers may be run out of their order, so that a full outbox does not slow down all others.
 */
export const CHANGE_FOREIGN_EVENTS_MAX = 2_000;
/** Changes that triggers take at once, or all those of one write; the next ones wait until these are run or kept. */
export const TRIGGER_EVENTS_AT_ONCE = 100;
/** Runs of one trigger after changes at once, each for another object; what waits for its author's threads included. */
export const TRIGGER_RUNS_AT_ONCE = 16;
/** A change waits so long for earlier ones of its object that another controller has, and that may never have been made. */
export const TRIGGER_ORDER_WAIT_MS = 120_000;
/** Objects whose earlier changes are looked for by one read. */
export const TRIGGER_ORDER_OBJECTS = 100;
/** So long changes are kept from other triggers by one that takes its time; then what waits for it is set aside. */
export const TRIGGER_PATIENCE_MS = 3_000;
/** Changes that wait in memory for one trigger; others wait set aside, and are taken up when half of these are over. */
export const TRIGGER_WAITING_MAX = 1_000;
export const TRIGGER_ASIDE_TTL_DAYS = 30;
/** What one run may say (what is beyond is counted in one line more), and how long each line of it is. */
export const TRIGGER_LOG_LINES_MAX = 100;
export const TRIGGER_LOG_LINE_MAX_CHARACTERS = 4_000;
/** Runs whose lines are being written. */
export const TRIGGER_LOG_RUNS_MAX = 1_000;
/** How often a trigger that stands still for its author says so. */
export const TRIGGER_STOPPED_TOLD_MS = 60_000;
/** Sets, lists and maps of one attribute. */
export const COLLECTION_ELEMENTS_MAX = 10_000;
/** Longer elements and map keys are named by their hash in the store. */
export const ELEMENT_NAME_MAX_BYTES = 200;

// Cached variables and collections (`appcontext`).
export const APPCONTEXT_NAME_MAX_BYTES = 256;
export const APPCONTEXT_TEXT_MAX_BYTES = MIB - KIB;
export const APPCONTEXT_ITEM_MAX_BYTES = 256 * KIB;
export const APPCONTEXT_TTL_MAX_SECONDS = 10 * 365 * 24 * 3_600;
/** Items that one list answers, put in order at one stretch. */
export const APPCONTEXT_LIST_MAX_ITEMS = 20_000;
/** Bytes of items that all lists of one tenant hold until they are sent. */
export const APPCONTEXT_LISTS_MAX_BYTES = 64 * MIB;
/** Items read at once. */
export const APPCONTEXT_PAGE_ITEMS = 256;

// Extension tables. A table is one value of the KvStore.
export const TABLE_NAME_MAX_BYTES = 512;
export const TABLES_PER_TENANT_MAX = 256;
export const TABLE_ROWS_MAX = 20_000;
/** Its rows as JSON: less than `KV_VALUE_MAX_BYTES`. */
export const TABLE_MAX_BYTES = MIB - KIB;
/** A body with blanks, escapes and what it replaces. */
export const TABLE_BODY_MAX_BYTES = 4 * MIB;
/** Attempts of one change, each on what another controller wrote meanwhile. */
export const TABLE_CHANGE_ATTEMPTS_MAX = 16;

// Tags. All trees of a tenant are one value of the KvStore.
export const TAG_DOMAIN_MAX_BYTES = 128;
/** Of a tag's whole path, so that no term of it is cut. */
export const TAG_PATH_MAX_BYTES = 240;
export const TAG_DEPTH_MAX = 16;
/** Of all domains, with those above others. */
export const TAGS_PER_TENANT_MAX = 20_000;
/** All trees as JSON: less than `KV_VALUE_MAX_BYTES`. */
export const TAG_TREES_MAX_BYTES = MIB - KIB;
/** Attempts of one change, each on what another controller wrote meanwhile. */
export const TAG_CHANGE_ATTEMPTS_MAX = 16;
/** Of one call that adds tags to objects or takes them. */
export const TAGS_PER_CALL_MAX = 100;
export const TAGGED_IDS_PER_CALL_MAX = 1_000;
/** Moves and removals of tags of one tenant that are under way. */
export const TAG_MOVES_OPEN_MAX = 16;
/** Objects that a move writes at the same time. */
export const TAG_MOVE_WRITES_AT_ONCE = 32;
/** A pass finds what got the old tag during the one before. */
export const TAG_MOVE_PASSES_MAX = 16;
/** Objects that refuse the new tag; with more the move ends. */
export const TAG_MOVE_REFUSED_MAX = 1_000;
/** Attempts of a move while the stores are away for a moment; then it rests until maintenance goes on with it. */
export const TAG_MOVE_ATTEMPTS = 5;
export const TAG_MOVE_RETRY_MS = 500;
/** The shortest interval between two notes of how far a move is. */
export const TAG_MOVE_PROGRESS_MS = 1_000;
/** A call waits for its move so long, less than `HTTP_CALL_DEADLINE_MS`. */
export const TAG_MOVE_ANSWER_MS = 100_000;
export const TAG_MOVE_RECORD_TTL_DAYS = 90;
