/** Limits of uploads, imports and exports. */

import { KIB, MIB } from "./units.ts";

// Export and import.
/** Ids of one class that an export sorts in one go. */
export const EXPORT_IDS_HELD_MAX = 100_000;
export const EXPORT_PAGE_ROWS = 500;
/** Objects whose earlier states an export starts to read before it writes them. Each may hold a page of them. */
export const EXPORT_HISTORIES_AHEAD = 8;
export const EXPORT_PIECE_CHARACTERS = 64 * KIB;
/** Rows, and characters, that an import writes between two records of its progress. */
export const IMPORT_CHUNK_MAX_ROWS = 1_000;
export const IMPORT_CHUNK_MAX_CHARACTERS = 2 * MIB;
/** Faults of one upload that are reported together; the check ends there. */
export const IMPORT_FAULTS_MAX = 20;
/** Warnings about the definitions of one upload; further ones are left out. */
export const IMPORT_WARNINGS_MAX = 100;
/** Ids in an import that several classes could have: of its objects and of the targets of their relations. */
export const IMPORT_OPEN_TARGETS_MAX = 200_000;
/** Imports of one controller that are checked or written at the same time. */
export const IMPORTS_UNDER_WAY_MAX = 4;
/** Time a call waits for its import, including the check; less than `HTTP_CALL_DEADLINE_MS`. */
export const IMPORT_ANSWER_MS = 100_000;
/** Minimum interval between two progress reports of an import, in its object and to its listeners. */
export const IMPORT_PROGRESS_MS = 1_000;
/** Attempts to write a chunk that the stores did not take. Then the import pauses until maintenance continues it. */
export const IMPORT_CHUNK_ATTEMPTS = 5;
export const IMPORT_CHUNK_RETRY_MS = 500;
export const TRANSFER_RECORD_TTL_DAYS = 90;

// Spreadsheets.
/** Rows of a sheet, as in spreadsheet programs. */
export const SHEET_ROWS_MAX = 1_048_576;
export const SHEET_COLUMNS_MAX = 16_384;
/** UTF-16 units of a cell's text, as in spreadsheet programs. */
export const SHEET_CELL_MAX_CHARACTERS = 32_767;
/** UTF-16 units of a sheet's name. */
export const SHEET_NAME_MAX_CHARACTERS = 31;
export const SHEET_ENTRIES_MAX = 12_000;
/** Unpacked bytes of all parts of a workbook, and unpacked bytes per packed byte beyond a free allowance. */
export const SHEET_UNPACKED_MAX_BYTES = 1_024 * MIB;
export const SHEET_RATIO_MAX = 200;
export const SHEET_RATIO_FREE_BYTES = 8 * MIB;
/** Characters of shared texts of a workbook's cells, which are held in memory. */
export const SHEET_SHARED_MAX_CHARACTERS = 32 * MIB;
/** Characters of one text of a part, and of one tag. */
export const MARKUP_MAX_CHARACTERS = 8 * MIB;
export const MARKUP_TAG_MAX_CHARACTERS = 64 * KIB;

// Sheets with a heading line, CSV or of a workbook, into one class.
/** Rows below the heading line. The row of each object is remembered, to find duplicates. */
export const SHEET_IMPORT_MAX_ROWS = 250_000;
/** UTF-16 units of one heading, and of all values of one row, in workbooks and CSV files. */
export const SHEET_HEADING_MAX_CHARACTERS = 1_000;
export const SHEET_ROW_MAX_CHARACTERS = 4 * MIB;
/** Rows of a plan that are listed one by one. */
export const IMPORT_PLAN_SHOWN_MAX = 1_000;

// Files.
/** Larger files must be downloaded; they are not returned as text. */
export const FILE_TEXT_MAX_BYTES = 8 * MIB;
/** Characters of file texts that a controller caches, and of the longest of them. */
export const FILE_TEXTS_KEPT_MAX_CHARACTERS = 16 * MIB;
export const FILE_TEXT_KEPT_MAX_CHARACTERS = 64 * KIB;
/** Bytes of a file's attributes as JSON text. */
export const FILE_ATTR_MAX_BYTES = 64 * KIB;
export const FILE_TAGS_MAX = 100;
/** Entries of a page of a folder, and of those that are read at once. Without `limit`, a listing has no bound. */
export const FILE_LIST_PAGE_MAX = 10_000;
export const FILE_LIST_BATCH = 256;
/** Small contents in memory at once, each of at most `BLOB_ROW_MAX_BYTES`. Further ones are stored before their change. */
export const FILE_CONTENTS_IN_MEMORY_MAX = 512;
/** Entries by which changes of single files take turns, per tenant. Files that share one repeat their attempts. */
export const FILE_SEQUENCES = 1_024;
/** Attempts of one change while other controllers change files of the same sequence. */
export const FILE_CHANGE_ATTEMPTS_MAX = 32;
/** Marks of contents that one call sets or removes in parallel. */
export const FILE_BLOB_CALLS_IN_FLIGHT = 8;
/** Open copies, moves and removals of files per tenant. */
export const FILE_WORKS_OPEN_MAX = 16;
/** Attempts of one to begin. An attempt fails if another one begins at the same time. */
export const FILE_WORK_BEGIN_ATTEMPTS_MAX = 16;
/** Files that one of them writes in parallel. */
export const FILE_WORK_BATCH_MAX = 64;
/** Passes over a folder. Each finds entries written during the previous pass. */
export const FILE_WORK_PASSES_MAX = 16;
/** Attempts while the stores are unavailable. Then the work pauses until maintenance continues it. */
export const FILE_WORK_ATTEMPTS = 5;
export const FILE_WORK_RETRY_MS = 500;
/** Time a call waits for its work; less than `HTTP_CALL_DEADLINE_MS`. */
export const FILE_WORK_ANSWER_MS = 100_000;

// History of files: contents that were replaced or removed.
/** Defaults of the settings `file_history_days` and `file_history_mib`. */
export const FILE_HISTORY_DAYS_DEFAULT = 30;
export const FILE_HISTORY_DAYS_MAX = 3_650;
export const FILE_HISTORY_MIB_DEFAULT = 2_048;
export const FILE_HISTORY_MIB_MAX = 64 * MIB;
/** Former contents of one file. The oldest go first. */
export const FILE_HISTORY_PER_FILE_MAX = 20;
/** Bytes that each former file counts for, besides its content. */
export const FILE_HISTORY_RECORD_BYTES = KIB;
/** Files whose former contents one read finds; at most `INDEX_UNION_MAX`. */
export const FILE_HISTORY_PATHS_AT_ONCE = 32;
/** Former files that are purged at once. */
export const FILE_HISTORY_ROWS_AT_ONCE = 64;
/** Former files that one step of the maintenance purges. */
export const FILE_HISTORY_ROWS_PER_SWEEP = 2_000;
/** Time between two checks of the age and the bytes of a tenant's history. */
export const FILE_HISTORY_LOOK_MS = 3_600_000;
/** Spans of time of which the bytes are counted at once. */
export const FILE_HISTORY_BUCKETS = 1_024;
/** The first span of time in which the trash is looked for. Each further one is four times as long. */
export const FILE_TRASH_SPAN_MS = 3_600_000;
export const FILE_TRASH_PAGE_DEFAULT = 100;
export const FILE_TRASH_PAGE_MAX = 1_000;

// Versions of file trees.
export const FILE_VERSION_NAME_MAX_BYTES = 128;
/** Versions of one path. */
export const FILE_VERSIONS_MAX = 10_000;
export const FILE_VERSIONS_PAGE_DEFAULT = 100;
export const FILE_VERSIONS_PAGE_MAX = 1_000;
/** The list of the entries of one version, or of the tree that a pull replaces: about 500,000 entries. */
export const FILE_LIST_MAX_BYTES = 128 * MIB;
/** Entries of a list that are sorted in memory. */
export const FILE_LIST_RUN_MAX_BYTES = 512 * KIB;
/** A list is written in blocks of this size, and the place of each block is indexed. */
export const FILE_LIST_BLOCK_BYTES = 64 * KIB;
/** Bytes of a list that one reader holds. Sorting has one reader for each run of the list. */
export const FILE_LIST_WINDOW_BYTES = 128 * KIB;
/** Attempts to read a list while others replace it. */
export const FILE_LIST_READ_ATTEMPTS = 5;
/** Snapshots that `tolocal` keeps, per tenant. */
export const FILE_SNAPSHOTS_MAX = 1_000;
