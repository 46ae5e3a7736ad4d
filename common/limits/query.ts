/** Limits of MQL, search and graph. */

import { KIB, MIB } from "./units.ts";

// Query language and queries.
export const MQL_TEXT_MAX_CHARACTERS = 4 * MIB;
/** Members of all objects, and elements of all lists, in the JSON of one `INSERT JSON`. */
export const INSERT_JSON_VALUES_MAX = 1_000_000;
export const MQL_TOKENS_MAX = 1_000_000;
/** A word is read in one piece: longer than every name that is allowed. */
export const MQL_WORD_MAX_CHARACTERS = 65_536;
/** Between two words: blank characters and comments are skipped in one piece. */
export const MQL_BLANKS_MAX = 1_000_000;
/** Parentheses, lists, maps, batches and NOTs inside each other. */
export const MQL_NESTING_MAX = 200;
/** Statements of one text. A text with more is imported, statement by statement. */
export const MQL_STATEMENTS_MAX = 50_000;
/** Words and signs of one statement, or of one row of an INSERT: the parser reads so many at once. */
export const MQL_STEP_TOKENS_MAX = 40_000;
/** Comparisons of one statement. The values of IN are none. */
export const MQL_CONDITIONS_MAX = 5_000;
/** The share for MATCH, PHRASE, PREFIX and FUZZY: each looks at every word of a text. */
export const MQL_TEXT_CONDITIONS_MAX = 50;
/** Rows that a SELECT with OVER (…) holds. */
export const QUERY_WINDOW_ROWS_MAX = 100_000;
/** How many rows before or behind `lag` and `lead` look at most. */
export const QUERY_WINDOW_DISTANCE_MAX = 100_000;
/** Rows of a grouped answer with FILL, those of empty steps among them. */
export const QUERY_FILLED_ROWS_MAX = 100_000;
/** Steps that one call of `bucket` or `date_trunc` keeps, where its rows say the width or the zone. */
export const CALENDAR_STEPS_KEPT = 100;
/** SELECTs inside the conditions and behind FROM and JOIN of one statement. */
export const MQL_SUB_SELECTS_MAX = 16;
/** Values that one function is given. */
export const MQL_EXPRESSION_OPERANDS_MAX = 100;
/** Fields and functions in one select list. */
export const MQL_OUTPUTS_MAX = 5_000;
export const MQL_GROUP_KEYS_MAX = 1_000;
export const MQL_ORDER_KEYS_MAX = 100;
export const MQL_JOINS_MAX = 16;
export const MQL_UNION_PARTS_MAX = 100;
/** Columns that one INSERT, UPDATE or CREATE CLASS names. */
export const MQL_WRITTEN_COLUMNS_MAX = 5_000;
/** Names behind RETURN and PATH of a MATCH. */
export const MQL_GRAPH_NAMES_MAX = 1_000;
/**
 * What one query, and all queries of one tenant, may hold while they group, sort, join, follow edges, make trees and
 * look for different rows, and the trees and rows of long texts until they are made; estimated.
 */
export const QUERY_TENANT_MEMORY_MAX_BYTES = 192 * MIB;
/** The same for all tenants together. */
export const QUERY_MEMORY_MAX_BYTES = 512 * MIB;
/** Rows that a sort holds before they go to disk. */
export const QUERY_SORT_MEMORY_MAX_BYTES = 32 * MIB;
/** Rows that a sort writes, reads or answers at once. */
export const QUERY_SORT_CHUNK_BYTES = 512 * KIB;
/** A plain select without LIMIT answers this many rows; `LIMIT -1` is without limit. */
export const QUERY_DEFAULT_LIMIT_ROWS = 100;
/** Rows a sort holds in memory when no small LIMIT bounds it. */
export const QUERY_SORT_MAX_ROWS = 100_000;
/** Disk that one sort takes for the rows that memory does not hold. */
export const QUERY_SORT_SPILL_MAX_BYTES = 1024 * MIB;
/** ORDER BY with LIMIT (and OFFSET) up to this keeps only the best rows. */
export const QUERY_TOP_MAX_ROWS = 2_000;
/** Values that `top`, and steps that `histogram` answers. */
export const QUERY_TOP_VALUES_MAX = 1_000;
export const QUERY_GROUPS_MAX = 100_000;
/** Objects of joined classes that one JOIN holds in memory; the first class streams. */
export const QUERY_JOIN_MAX_ROWS = 100_000;
/** Different values that a SELECT inside a condition answers. */
export const QUERY_SUB_SELECT_VALUES_MAX = 10_000;
/** Rows that one JOIN makes, whether they are answered or not. */
export const QUERY_JOINED_ROWS_MAX = 20_000_000;
/**
 * Edges that the relations of a SELECT follow, one behind the other and of different types; where paths begin alike,
 * these steps count once.
 */
export const QUERY_FOLLOWED_STEPS_MAX = 32;
/** Rows of which a read in order holds the ids, as equal ones have no order among themselves. */
export const QUERY_IN_ORDER_MAX_ROWS = 10_000;
/** Objects that the relations of one page of rows lead to, with those passed on the way. */
export const QUERY_FOLLOWED_MAX = 100_000;
/** Finds of one read whose size is estimated for `EXPLAIN ANALYZE`. */
export const QUERY_ESTIMATED_FINDS_MAX = 100;
/** A cursor that is longer, as its rows are ordered by long texts, is neither made nor taken. */
export const QUERY_CURSOR_MAX_CHARACTERS = 256 * KIB;
export const QUERY_DISTINCT_MAX_ROWS = 100_000;
/** Characters of one search condition. */
export const SEARCH_TEXT_MAX_CHARACTERS = 64 * KIB;
/** Words and field conditions of one search. */
export const SEARCH_PARTS_MAX = 1_000;
/** Fields in one list of PRINT, SORT, UNIQ or GROUP. */
export const SEARCH_FIELDS_MAX = 1_000;
/** Objects that one `call` of a search is about. */
export const SEARCH_CALL_MAX_ROWS = 10_000;
/** Objects above each other in a tree that a search answers. */
export const SEARCH_TREE_MAX_DEPTH = 100;
/** Rows that a caller inside the controller may collect at once. */
export const QUERY_COLLECT_MAX_ROWS = 100_000;
/** Objects one UPDATE may change. */
export const QUERY_UPDATE_MAX_ROWS = 100_000;
export const QUERY_WRITES_IN_FLIGHT_MAX = 64;
export const QUERY_VALUE_ROWS_MAX = 10_000;
/** Characters of a statement times its lists of values: it is bound once for each list. */
export const QUERY_EXECUTED_MAX_CHARACTERS = 64 * MIB;
/** Rows that an INSERT or an import did not store, told by name; the rest is counted. */
export const UNSTORED_TOLD_MAX = 20;
/** The targets of a script's relations that are checked for existence, to warn of missing ones. */
export const QUERY_ENDS_CHECKED_MAX = 1_000;
/**
 * Text, values and found objects of one batch, as they lie in its journal; less than `KV_VALUE_MAX_BYTES`, as its
 * format takes a byte.
 */
export const QUERY_BATCH_JOURNAL_MAX_BYTES = MIB - 1;
/**
 * An interrupted batch that no controller continues for this long is given up: less than `OBJECT_TOMBSTONE_KEEP_MS`.
 */
export const QUERY_BATCH_KEEP_MS = 5 * 24 * 3_600_000;
/** Characters of all texts whose trees are kept for the next time; a tree takes some 35 bytes for each. */
export const QUERY_PARSED_MAX_CHARACTERS = 256 * 1024;
/** Longer texts are parsed anew each time. */
export const QUERY_PARSED_TEXT_MAX_CHARACTERS = 4_096;
/** Characters that a function of a row makes at most; beyond, its result is null. */
export const QUERY_FUNCTION_TEXT_MAX_CHARACTERS = 1024 * 1024;
/** Characters that all functions of one row read and make together: they are worked through at one stretch. */
export const QUERY_ROW_CHARACTERS_MAX = 4 * MIB;
/**
 * Offsets of time zones that the functions of one row and of one statement look up anew: those that were looked up
 * lately are kept (`ZONE_PARTS_KEPT`). Each takes some microseconds, and there is no pause within a row. All zones there
 * are at one time take some 6,000; one zone takes 29,000 for all years from 1800 to 2100.
 */
export const QUERY_ROW_ZONE_OFFSETS_MAX = 8_000;
export const QUERY_ZONE_OFFSETS_MAX = 300_000;
/**
 * Characters that the LIKE, CONTAINS and full text conditions of a statement look through for one row, those of PHRASE, PREFIX
 * and FUZZY counted 20 times: there is no pause within a row. The slowest take a tenth of a second for as many.
 */
export const QUERY_ROW_LOOKED_CHARACTERS_MAX = 6 * MIB;
/** Regular expressions that come from rows and are kept compiled, for one place of a statement. */
export const QUERY_PATTERNS_KEPT_MAX = 100;
/** Class trees kept, as the principals of equal rights see them. */
export const QUERY_TREES_KEPT_MAX = 256;
/** Chains that one MATCH unites. */
export const GRAPH_CHAINS_MAX = 64;
/** Edges written in one chain. */
export const GRAPH_STEPS_MAX = 32;
/** Edges that `[*]` and `[*n]` pass. */
export const GRAPH_DEPTH_MAX = 100;
/** Objects that one MATCH meets. */
export const GRAPH_NODES_MAX = 20_000;
/** Edges that one MATCH meets. */
export const GRAPH_EDGES_MAX = 100_000;
export const GRAPH_PATHS_MAX = 10_000;
/** Steps of the path search, including those that lead to no path. */
export const GRAPH_PATH_SEARCH_MAX_STEPS = 500_000;
/** Class records that a list of classes sends at a time. */
export const SCHEMA_PAGE_RECORDS = 200;
/** Records of a schema table, which is answered as one text. */
export const SCHEMA_TABLE_MAX_RECORDS = 100_000;

// Conditions on items of collections (`common/where`).
export const WHERE_TEXT_MAX_CHARACTERS = 64 * KIB;
/** Values and fields of one condition. */
export const WHERE_PARTS_MAX = 1_000;
export const WHERE_PATTERNS_MAX = 16;
/** Brackets, signs and powers inside each other. */
export const WHERE_NESTING_MAX = 200;
/** Length of a text that `+` makes. */
export const WHERE_VALUE_MAX_CHARACTERS = MIB;
/**
 * Characters that are looked at, and instructions of regular expressions, for one item: some 40 ms at worst, at which
 * nothing else runs.
 */
export const WHERE_ITEM_STEPS_MAX = 4_000_000;
