/** Limits of `odp fs` (`controller/cli/fs`). */

import { KIB, MIB } from "./units.ts";

/** Files and folders of one side. */
export const FILE_SYNC_ENTRIES_MAX = 1_000_000;
/** Calls to the controller, and files that are read or written, at once. */
export const FILE_SYNC_AT_ONCE = 8;
/** Entries of a local folder that are looked at at once. */
export const FILE_SYNC_STATS_AT_ONCE = 32;
/** A larger file is sent as a stream, which cannot be sent again after a failure. */
export const FILE_SYNC_WHOLE_MAX_BYTES = MIB;
export const FILE_SYNC_PIECE_BYTES = 256 * KIB;
/** The state of the last sync: about 200 bytes a file. */
export const FILE_SYNC_STATE_MAX_BYTES = 512 * MIB;
/** A file that changed within this time may change again with the same size and time of change, on a coarse disk. */
export const FILE_SYNC_SETTLED_MS = 2_000;
/** Time that one upload or download may take, with its repetitions. */
export const FILE_SYNC_TRANSFER_MS = 4 * 3_600_000;
/** Lines about conflicts, and about entries left out; `--json` has all. */
export const FILE_SYNC_NAMED_MAX = 100;
/** Watching: quiet time after a change before the sync begins, and the longest wait for it. */
export const FILE_SYNC_QUIET_MS = 200;
export const FILE_SYNC_BURST_MAX_MS = 2_000;
/** Watching: time without a change after which both sides are compared again. */
export const FILE_SYNC_COMPARE_LOCAL_MS = 60_000;
/** As above if the source is the controller, which announces no changes of files. */
export const FILE_SYNC_COMPARE_REMOTE_MS = 5_000;
/** Watching: pause after a failed comparison; it doubles up to the longest. */
export const FILE_SYNC_PAUSE_MS = 1_000;
export const FILE_SYNC_PAUSE_MAX_MS = 60_000;
/** Time between two lines of progress on a terminal. */
export const FILE_SYNC_PROGRESS_EVERY_MS = 200;
