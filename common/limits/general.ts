/** Limits that every part uses. */

import { KIB } from "./units.ts";

// Waiting.
export const STORE_CALL_DEADLINE_MS = 12_000;
/**
 * Total time that a call from outside waits for stores that do not answer: for reads and sign-ins, and for changes. Its
 * store calls end a little earlier, so that its answer can name the missing store.
 */
export const CALL_READ_WAIT_MS = 12_000;
export const CALL_CHANGE_WAIT_MS = 30_000;
export const CALL_ANSWER_RESERVE_MS = 500;
/** Deadline of a check whether the stores are ready, and the time for which its result is cached. */
export const READY_WAIT_MS = 5_000;
export const READY_KEPT_MS = 1_000;
/**
 * Total duration of an orderly stop. The others are parts of it: time for running work and calls to end by themselves,
 * for cancelled calls to be answered, for WebSocket clients to confirm the close, and for agents to end their streams.
 */
export const SHUTDOWN_DEADLINE_MS = 10_000;
export const SHUTDOWN_WORK_MS = 3_000;
export const SHUTDOWN_ANSWERS_MS = 1_000;
export const SHUTDOWN_SOCKETS_MS = 1_000;
export const SHUTDOWN_STREAMS_MS = 3_000;
/**
 * Time for which a start retries while its stores are unavailable or do not report the outcome of a write, and the
 * pause between attempts.
 */
export const START_PATIENCE_MS = 60_000;
export const START_AGAIN_MS = 500;

// Names in errors.
/** Names that are compared with an unknown one to find the nearest, and UTF-16 units of the unknown one. */
export const NEAREST_MAX_NAMES = 2_000;
export const NEAREST_MAX_CHARACTERS = 200;

// Regular expressions of users.
export const PATTERN_MAX_CHARACTERS = 8_000;
/** Instructions of the compiled program. Nested counted repeats multiply them. */
export const PATTERN_MAX_PROGRAM = 20_000;
/** Characters of a text for V8's backtracking engine, whose time may grow with the square of the text. */
export const PATTERN_BACKTRACKING_MAX_CHARACTERS = 4_096;
/** Backtracks after which V8 continues in its linear engine. */
export const PATTERN_BACKTRACKS_MAX = 10_000;
/**
 * Characters of a text times instructions of the program: some 0.2 seconds if every instruction examines every
 * character.
 */
export const PATTERN_STEPS_MAX = 20_000_000;
/** Windows in which delimiters of records are searched. They overlap by the longest delimiter that is surely found. */
export const DELIMITER_WINDOW_BYTES = 2 * KIB;
export const DELIMITER_MAX_BYTES = 512;

// Texts from outside.
/** Malformed characters of a text whose positions are reported; all are counted. */
export const TEXT_PLACES_MAX = 10;
/** Characters of an unknown encoding's name that its error shows. */
export const ENCODING_NAME_SHOWN_CHARACTERS = 60;

// Paths given from outside.
export const PATH_MAX_BYTES = KIB;
export const PATH_SEGMENT_MAX_BYTES = 255;
export const PATH_DEPTH_MAX = 32;
/** Links that resolving one path may follow; as in Linux. */
export const PATH_LINKS_MAX = 40;

// Time zones.
export const ZONE_NAME_MAX_CHARACTERS = 64;
/** Time zones cached by name: enough for all names. The format of each takes some 20 KB. */
export const ZONES_KEPT = 700;
/** Cached parts of years with their offsets, for all zones. Each takes some 200 bytes; 8 are a year. */
export const ZONE_PARTS_KEPT = 50_000;
