/** Limits that every part uses. */

import { KIB } from "./units.ts";

// Waiting.
export const STORE_CALL_DEADLINE_MS = 12_000;
/**
 * How long a call from outside waits, in all it asks for, for stores that do not answer: one that reads or signs in, and
 * one that changes something. Its store calls end a little earlier, so that its answer says what was away.
 */
export const CALL_READ_WAIT_MS = 12_000;
export const CALL_CHANGE_WAIT_MS = 30_000;
export const CALL_ANSWER_RESERVE_MS = 500;
/** A look at whether the stores are ready waits so long, and what it found holds so long. */
export const READY_WAIT_MS = 5_000;
export const READY_KEPT_MS = 1_000;
/**
 * How long an orderly stop lasts in all. Parts of it: for work and calls under way to end by themselves, for calls that
 * were ended to be answered, and for agents to end their streams.
 */
export const SHUTDOWN_DEADLINE_MS = 10_000;
export const SHUTDOWN_WORK_MS = 3_000;
export const SHUTDOWN_ANSWERS_MS = 1_000;
export const SHUTDOWN_STREAMS_MS = 3_000;
/**
 * How long a start goes on while its stores are away or do not say how a write ended, and its pause between two
 * attempts.
 */
export const START_PATIENCE_MS = 60_000;
export const START_AGAIN_MS = 500;

// Regular expressions of users.
export const PATTERN_MAX_CHARACTERS = 8_000;
/** Instructions of the compiled program: counted repeats inside counted repeats multiply them. */
export const PATTERN_MAX_PROGRAM = 20_000;
/** V8's backtracking engine, whose time may grow with the square of the text, is given no longer text. */
export const PATTERN_BACKTRACKING_MAX_CHARACTERS = 4_096;
/** Backtracks that V8 counts before it goes on in its linear engine. */
export const PATTERN_BACKTRACKS_MAX = 10_000;
/**
 * Characters of a text times instructions of the program: some 0.2 seconds when every instruction looks at every
 * character.
 */
export const PATTERN_STEPS_MAX = 20_000_000;
/** Delimiters of records are looked for in windows, which overlap by the longest one that is surely found. */
export const DELIMITER_WINDOW_BYTES = 2 * KIB;
export const DELIMITER_MAX_BYTES = 512;

// Texts from outside.
/** Malformed characters of a text whose places are told; all are counted. */
export const TEXT_PLACES_MAX = 10;
/** Characters of an unknown encoding's name that its error shows. */
export const ENCODING_NAME_SHOWN_CHARACTERS = 60;

// Paths given from outside.
export const PATH_MAX_BYTES = KIB;
export const PATH_SEGMENT_MAX_BYTES = 255;
export const PATH_DEPTH_MAX = 32;
/** As many links of the file system lead one path on; as Linux does it. */
export const PATH_LINKS_MAX = 40;

// Time zones.
export const ZONE_NAME_MAX_CHARACTERS = 64;
/** Zones that are kept by name, all names that there are: the format of each takes some 20 KB. */
export const ZONES_KEPT = 700;
/** Parts of years whose offsets are kept, of all zones together: each takes some 200 bytes, 8 are a year. */
export const ZONE_PARTS_KEPT = 50_000;
