/** Limits of the typed client (`common/client`). */

import { MIB } from "./units.ts";

/** Time for one call with all its attempts, from the first byte sent to the last byte of the answer. */
export const CLIENT_CALL_TIMEOUT_MS = 120_000;
/** Time without any byte after which a stream of lines or a download is given up. */
export const CLIENT_SILENCE_MS = 300_000;
/** The same for a stream of events, which has a heartbeat every `HTTP_EVENTS_HEARTBEAT_MS`. */
export const CLIENT_EVENTS_SILENCE_MS = 60_000;
/** Longest time that a caller may set for either. */
export const CLIENT_WAIT_MAX_MS = 7 * 24 * 3_600_000;
/** Bytes of an answer that is held as a whole. */
export const CLIENT_ANSWER_MAX_BYTES = 256 * MIB;
/** Characters of one line, or of one event. */
export const CLIENT_LINE_MAX_CHARACTERS = 64 * MIB;
/** Bytes of an answer that is no success and no failure of a controller, as far as it is read. */
export const CLIENT_FAILURE_MAX_BYTES = MIB;
/** Frames of a WebSocket, and their characters, that wait for their reader. */
export const CLIENT_FRAMES_MAX = 4_096;
export const CLIENT_FRAMES_MAX_CHARACTERS = 8 * MIB;
/** Attempts of one call, and of connections in a row that bring no event. */
export const CLIENT_ATTEMPTS_MAX = 4;
/** Pause before the first repetition, at most; it doubles with each one, up to `CLIENT_RETRY_PAUSE_MAX_MS`. */
export const CLIENT_RETRY_PAUSE_MS = 250;
export const CLIENT_RETRY_PAUSE_MAX_MS = 5_000;
/** Repetitions that one client makes in a burst. `CLIENT_RETRY_SUCCESSES` calls that succeed give back one. */
export const CLIENT_RETRIES_MAX = 10;
export const CLIENT_RETRY_SUCCESSES = 10;
/** Nesting, members and elements of the JSON of an answer. */
export const CLIENT_JSON_DEPTH_MAX = 1_000;
export const CLIENT_JSON_VALUES_MAX = 50_000_000;
/** Characters of the cause that an error shows of an answer which no controller gave. */
export const CLIENT_FOREIGN_SHOWN_CHARACTERS = 200;
