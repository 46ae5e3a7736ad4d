/** Limits of uploads, imports and exports. */

import { KIB, MIB } from "./units.ts";

// Export and import.
/** Ids of one class that an export sorts at once. */
export const EXPORT_IDS_HELD_MAX = 100_000;
export const EXPORT_PAGE_ROWS = 500;
/** Objects whose earlier states an export begins to read before it writes them: each may have a page of them. */
export const EXPORT_HISTORIES_AHEAD = 8;
export const EXPORT_PIECE_CHARACTERS = 64 * KIB;
/** What an import writes between two notes of how far it is. */
export const IMPORT_CHUNK_MAX_ROWS = 1_000;
export const IMPORT_CHUNK_MAX_CHARACTERS = 2 * MIB;
/** Faults of one upload that are reported together; the check ends there. */
export const IMPORT_FAULTS_MAX = 20;
/** Ids in an import that several classes can have, both of its objects and of what they are related to. */
export const IMPORT_OPEN_TARGETS_MAX = 200_000;
/** Imports of one controller that are checked or written at the same time. */
export const IMPORTS_UNDER_WAY_MAX = 4;
/** A call waits for its import so long, its check included, less than `HTTP_CALL_DEADLINE_MS`. */
export const IMPORT_ANSWER_MS = 100_000;
/** The shortest interval between two progress reports of an import, in its object and to its listeners. */
export const IMPORT_PROGRESS_MS = 1_000;
/** A chunk that the stores did not take is tried again; then the import rests until maintenance goes on with it. */
export const IMPORT_CHUNK_ATTEMPTS = 5;
export const IMPORT_CHUNK_RETRY_MS = 500;
export const TRANSFER_RECORD_TTL_DAYS = 90;

// Spreadsheets.
/** Rows of a sheet, as spreadsheet programs have them. */
export const SHEET_ROWS_MAX = 1_048_576;
export const SHEET_COLUMNS_MAX = 16_384;
/** UTF-16 units of the text of a cell, as spreadsheet programs have them. */
export const SHEET_CELL_MAX_CHARACTERS = 32_767;
/** UTF-16 units of the name of a sheet. */
export const SHEET_NAME_MAX_CHARACTERS = 31;
export const SHEET_ENTRIES_MAX = 12_000;
/** Bytes of all parts of a workbook together, unpacked, and unpacked bytes per packed byte beyond a free allowance. */
export const SHEET_UNPACKED_MAX_BYTES = 1_024 * MIB;
export const SHEET_RATIO_MAX = 200;
export const SHEET_RATIO_FREE_BYTES = 8 * MIB;
/** Texts that cells of a workbook share; they are held in memory. */
export const SHEET_SHARED_MAX_CHARACTERS = 32 * MIB;
/** A tag or a text of a part. */
export const SHEET_MARKUP_MAX_CHARACTERS = 8 * MIB;

// Sheets with a heading line, CSV or of a workbook, into one class.
/** Rows below the heading line; where they are is remembered for each object, so that none is there twice. */
export const SHEET_IMPORT_MAX_ROWS = 250_000;
/** UTF-16 units of one heading, and of all values of one row, of a workbook as of a CSV file. */
export const SHEET_HEADING_MAX_CHARACTERS = 1_000;
export const SHEET_ROW_MAX_CHARACTERS = 4 * MIB;
/** Names among which the nearest one to a word that is none of them is looked for, and UTF-16 units of the word. */
export const SHEET_NEAREST_MAX_NAMES = 2_000;
export const SHEET_NEAREST_MAX_CHARACTERS = 80;
/** Rows of a plan that are told one by one. */
export const IMPORT_PLAN_SHOWN_MAX = 1_000;

// Files.
/** A file larger than this is downloaded, not answered as text. */
export const FILE_TEXT_MAX_BYTES = 8 * MIB;
/** Texts of files that a controller keeps in memory, and the longest of them. */
export const FILE_TEXTS_KEPT_MAX_CHARACTERS = 16 * MIB;
export const FILE_TEXT_KEPT_MAX_CHARACTERS = 64 * KIB;
/** The attributes of a file as JSON text. */
export const FILE_ATTR_MAX_BYTES = 64 * KIB;
export const FILE_TAGS_MAX = 100;
/** Marks of contents that are set or taken off at the same time for one call. */
export const FILE_BLOB_CALLS_IN_FLIGHT = 8;
/** Copies, moves and removals of one tenant that are under way. */
export const FILE_WORKS_OPEN_MAX = 16;
/** Attempts of one to begin, each beside another that began meanwhile. */
export const FILE_WORK_BEGIN_ATTEMPTS_MAX = 16;
/** Files that one writes at once. */
export const FILE_WORK_BATCH_MAX = 64;
/** A pass over a folder finds what was written into it during the one before. */
export const FILE_WORK_PASSES_MAX = 16;
/** Attempts while the stores are away for a moment; then it rests until maintenance goes on with it. */
export const FILE_WORK_ATTEMPTS = 5;
export const FILE_WORK_RETRY_MS = 500;
/** A call waits so long for what it began, less than `HTTP_CALL_DEADLINE_MS`. */
export const FILE_WORK_ANSWER_MS = 100_000;
