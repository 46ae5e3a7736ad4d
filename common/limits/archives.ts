/** Limits of archives of the file space. */

import { KIB, MIB } from "./units.ts";

/** Files and folders in one archive. */
export const FILE_ARCHIVE_ENTRIES_MAX = 100_000;
/** Bytes of the files in an archive that is read, after unpacking. */
export const FILE_ARCHIVE_UNPACKED_MAX_BYTES = 4_096 * MIB;
/** Unpacked bytes per packed byte, beyond a free allowance. */
export const FILE_ARCHIVE_RATIO_MAX = 200;
export const FILE_ARCHIVE_RATIO_FREE_BYTES = 8 * MIB;
/** Paths of one export. */
export const FILE_EXPORT_SOURCES_MAX = 256;
/** Exports and imports of one tenant on one controller. Each holds a list of its entries in memory. */
export const FILE_ARCHIVES_AT_ONCE_MAX = 4;
/** Files that an import writes between two records of its progress. The record names each of them. */
export const FILE_IMPORT_BATCH_MAX = 64;
export const FILE_IMPORT_PARALLEL_FILES = 8;
/** Deadline of a call with an archive, until its answer begins. */
export const FILE_ARCHIVE_CALL_DEADLINE_MS = 600_000;
/** Warnings about files that an import lists one by one. */
export const FILE_IMPORT_WARNINGS_MAX = 20;
/** Bytes of one piece in which an archive is written. */
export const ARCHIVE_PIECE_BYTES = 64 * KIB;
