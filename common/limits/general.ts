/** Of what every part uses. */

import { KIB } from "./units.ts";

// Waiting.
export const STORE_CALL_DEADLINE_MS = 12_000;
export const SHUTDOWN_DEADLINE_MS = 10_000;
/** How long a start goes on while its stores are away or do not say how a write ended, and its pause between two attempts. */
export const START_PATIENCE_MS = 60_000;
export const START_AGAIN_MS = 500;

// Regular expressions of users.
export const PATTERN_MAX_CHARACTERS = 8_000;
/** Instructions of the compiled program: counted repeats inside counted repeats multiply them. */
export const PATTERN_MAX_PROGRAM = 20_000;

// Paths given from outside.
export const PATH_MAX_BYTES = KIB;
export const PATH_SEGMENT_MAX_BYTES = 255;
export const PATH_DEPTH_MAX = 32;
