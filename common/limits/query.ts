/** Limits of MQL, search and graph. */

import { KIB, MIB } from "./units.ts";

// Query language and queries.
export const MQL_TEXT_MAX_CHARACTERS = 4 * MIB;
/** Members of all objects, plus elements of all lists, in the JSON of one `INSERT JSON`. */
export const INSERT_JSON_VALUES_MAX = 1_000_000;
export const MQL_TOKENS_MAX = 1_000_000;
/** Characters of a word, which is read in one go. Longer than every allowed name. */
export const MQL_WORD_MAX_CHARACTERS = 65_536;
/** Blank characters and comments between two words, which are skipped in one go. */
export const MQL_BLANKS_MAX = 1_000_000;
/** Nesting of parentheses, lists, maps, batches and NOTs. */
export const MQL_NESTING_MAX = 200;
/** Statements per text. Longer texts are imported statement by statement. */
export const MQL_STATEMENTS_MAX = 50_000;
/** Words and signs of one statement, or of one row of an INSERT, which the parser reads in one go. */
export const MQL_STEP_TOKENS_MAX = 40_000;
/** Comparisons per statement. The values of IN do not count. */
export const MQL_CONDITIONS_MAX = 5_000;
/** MATCH, PHRASE, PREFIX and FUZZY among them: each examines every word of a text. */
export const MQL_TEXT_CONDITIONS_MAX = 50;
/** Rows that a SELECT with OVER (…) holds in memory. */
export const QUERY_WINDOW_ROWS_MAX = 100_000;
/** Maximum distance in rows of `lag` and `lead`. */
export const QUERY_WINDOW_DISTANCE_MAX = 100_000;
/** Rows of a grouped answer with FILL, including those of empty steps. */
export const QUERY_FILLED_ROWS_MAX = 100_000;
/** Steps that one call of `bucket` or `date_trunc` caches, if its rows contain the width or the zone. */
export const CALENDAR_STEPS_KEPT = 100;
/** SELECTs per statement in conditions and after FROM and JOIN. */
export const MQL_SUB_SELECTS_MAX = 16;
/** Arguments of one function. */
export const MQL_EXPRESSION_OPERANDS_MAX = 100;
/** Fields and functions in one select list. */
export const MQL_OUTPUTS_MAX = 5_000;
export const MQL_GROUP_KEYS_MAX = 1_000;
export const MQL_ORDER_KEYS_MAX = 100;
export const MQL_JOINS_MAX = 16;
export const MQL_UNION_PARTS_MAX = 100;
/** Columns that one INSERT, UPDATE or CREATE CLASS names. */
export const MQL_WRITTEN_COLUMNS_MAX = 5_000;
/** Names after RETURN and PATH of a MATCH. */
export const MQL_GRAPH_NAMES_MAX = 1_000;
/**
 * Estimated memory of one query, and of all queries of one tenant: for grouping, sorting, joins, edges, trees and
 * distinct rows, and for the syntax trees and rows of long texts until they are complete.
 */
export const QUERY_TENANT_MEMORY_MAX_BYTES = 192 * MIB;
/** The same for all tenants together. */
export const QUERY_MEMORY_MAX_BYTES = 512 * MIB;
/** Bytes of rows that a sort holds in memory before it writes them to disk. */
export const QUERY_SORT_MEMORY_MAX_BYTES = 32 * MIB;
/** Bytes of rows that a sort writes, reads or returns in one piece. */
export const QUERY_SORT_CHUNK_BYTES = 512 * KIB;
/** Rows of a plain select without LIMIT. `LIMIT -1` removes the limit. */
export const QUERY_DEFAULT_LIMIT_ROWS = 100;
/** Rows that a sort holds in memory when no small LIMIT bounds it. */
export const QUERY_SORT_MAX_ROWS = 100_000;
/** Disk space that one sort uses for rows that do not fit into memory. */
export const QUERY_SORT_SPILL_MAX_BYTES = 1024 * MIB;
/** ORDER BY with LIMIT plus OFFSET up to this keeps only the best rows. */
export const QUERY_TOP_MAX_ROWS = 2_000;
/** Values that `top` returns, and steps that `histogram` returns. */
export const QUERY_TOP_VALUES_MAX = 1_000;
export const QUERY_GROUPS_MAX = 100_000;
/** Objects of joined classes that one JOIN holds in memory; the first class is streamed. */
export const QUERY_JOIN_MAX_ROWS = 100_000;
/** Distinct values that a SELECT inside a condition returns. */
export const QUERY_SUB_SELECT_VALUES_MAX = 10_000;
/** Rows that one JOIN creates, whether they are returned or not. */
export const QUERY_JOINED_ROWS_MAX = 20_000_000;
/**
 * Edges that the relations of a SELECT follow in sequence, of different types. Common beginnings of paths count once.
 */
export const QUERY_FOLLOWED_STEPS_MAX = 32;
/** Rows whose ids a read in order holds, because rows with equal keys have no order among themselves. */
export const QUERY_IN_ORDER_MAX_ROWS = 10_000;
/** Objects that the relations of one page of rows reach, including those on the way. */
export const QUERY_FOLLOWED_MAX = 100_000;
/** Finds of one read whose size is estimated for `EXPLAIN ANALYZE`. */
export const QUERY_ESTIMATED_FINDS_MAX = 100;
/** Characters of a cursor. A longer one, because rows are ordered by long texts, is neither made nor accepted. */
export const QUERY_CURSOR_MAX_CHARACTERS = 256 * KIB;
export const QUERY_DISTINCT_MAX_ROWS = 100_000;
/** Characters of one search condition. */
export const SEARCH_TEXT_MAX_CHARACTERS = 64 * KIB;
/** Words and field conditions of one search. */
export const SEARCH_PARTS_MAX = 1_000;
/** Fields in one list of PRINT, SORT, UNIQ or GROUP. */
export const SEARCH_FIELDS_MAX = 1_000;
/** Objects that one `call` of a search takes. */
export const SEARCH_CALL_MAX_ROWS = 10_000;
/** Depth of a tree that a search returns. */
export const SEARCH_TREE_MAX_DEPTH = 100;
/** Rows that a caller inside the controller may collect in memory. */
export const QUERY_COLLECT_MAX_ROWS = 100_000;
/** Objects that one UPDATE may change. */
export const QUERY_UPDATE_MAX_ROWS = 100_000;
export const QUERY_WRITES_IN_FLIGHT_MAX = 64;
export const QUERY_VALUE_ROWS_MAX = 10_000;
/** Characters of a statement times its lists of values, because it is bound once per list. */
export const QUERY_EXECUTED_MAX_CHARACTERS = 64 * MIB;
/** Rows that an INSERT or an import did not store and names one by one; the others are counted. */
export const UNSTORED_TOLD_MAX = 20;
/** Targets of a script's relations whose existence is checked, to warn of missing ones. */
export const QUERY_ENDS_CHECKED_MAX = 1_000;
/**
 * Text, values and found objects of one batch in its journal. Less than `KV_VALUE_MAX_BYTES`, because the format takes
 * a byte.
 */
export const QUERY_BATCH_JOURNAL_MAX_BYTES = MIB - 1;
/**
 * Time after which an interrupted batch that no controller continues is given up; less than `OBJECT_TOMBSTONE_KEEP_MS`.
 */
export const QUERY_BATCH_KEEP_MS = 5 * 24 * 3_600_000;
/** Characters of all texts whose syntax trees are cached. A tree takes some 35 bytes per character. */
export const QUERY_PARSED_MAX_CHARACTERS = 256 * 1024;
/** Longer texts are not cached. */
export const QUERY_PARSED_TEXT_MAX_CHARACTERS = 4_096;
/** Characters that a function creates per row; beyond them its result is null. */
export const QUERY_FUNCTION_TEXT_MAX_CHARACTERS = 1024 * 1024;
/** Characters that all functions of one row read and create together, because there is no pause within a row. */
export const QUERY_ROW_CHARACTERS_MAX = 4 * MIB;
/**
 * Offsets of time zones that the functions of one row and of one statement look up; cached ones (`ZONE_PARTS_KEPT`) do
 * not count. Each takes some microseconds, and there is no pause within a row. All existing zones at one time take some
 * 6,000; one zone takes 29,000 for all years from 1800 to 2100.
 */
export const QUERY_ROW_ZONE_OFFSETS_MAX = 8_000;
export const QUERY_ZONE_OFFSETS_MAX = 300_000;
/**
 * Characters that the LIKE, CONTAINS and full-text conditions of a statement examine per row, because there is no pause
 * within a row. Those of PHRASE, PREFIX and FUZZY count 20 times. The slowest take a tenth of a second for this number.
 */
export const QUERY_ROW_LOOKED_CHARACTERS_MAX = 6 * MIB;
/** Compiled regular expressions that come from rows and are cached, per place in a statement. */
export const QUERY_PATTERNS_KEPT_MAX = 100;
/** Cached class trees, one per set of rights. */
export const QUERY_TREES_KEPT_MAX = 256;
/** Cached meanings of statements, one per statement and set of rights. */
export const QUERY_MEANINGS_KEPT_MAX = 4_096;
/** Chains that one MATCH combines. */
export const GRAPH_CHAINS_MAX = 64;
/** Edges written in one chain. */
export const GRAPH_STEPS_MAX = 32;
/** Rules that EXPLAIN names for each class or tree that is read. */
export const EXPLAINED_RULES_MAX = 100;
/** Characters of one rule in EXPLAIN. */
export const EXPLAINED_RULE_MAX_CHARACTERS = 2_000;
/** Edges that `[*]` and `[*n]` follow. */
export const GRAPH_DEPTH_MAX = 100;
/** Objects that one MATCH visits. */
export const GRAPH_NODES_MAX = 20_000;
/** Edges that one MATCH visits. */
export const GRAPH_EDGES_MAX = 100_000;
export const GRAPH_PATHS_MAX = 10_000;
/** Steps of the path search, including those that lead to no path. */
export const GRAPH_PATH_SEARCH_MAX_STEPS = 500_000;
/** Class records that a list of classes sends at a time. */
export const SCHEMA_PAGE_RECORDS = 200;
/** Records of a schema table, which is returned as one text. */
export const SCHEMA_TABLE_MAX_RECORDS = 100_000;

// Conditions on items of collections (`common/where`).
export const WHERE_TEXT_MAX_CHARACTERS = 64 * KIB;
/** Values and fields of one condition. */
export const WHERE_PARTS_MAX = 1_000;
export const WHERE_PATTERNS_MAX = 16;
/** Nesting of brackets, signs and powers. */
export const WHERE_NESTING_MAX = 200;
/** Characters of a text that `+` creates. */
export const WHERE_VALUE_MAX_CHARACTERS = MIB;
/**
 * Characters examined, plus instructions of regular expressions, per item. At worst they take some 40 ms, in which
 * nothing else runs.
 */
export const WHERE_ITEM_STEPS_MAX = 4_000_000;
