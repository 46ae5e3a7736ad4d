/** Limits of one controller, and between controllers. */

import { KIB, MIB } from "./units.ts";

// Recurring work of a controller.
export const MAINTENANCE_INTERVAL_MS = 60_000;
export const BLOB_SWEEP_INTERVAL_MS = 3_600_000;
/** Unmarked content is kept this long: an upload that is under way marks it only at its end. */
export const BLOB_SWEEP_GRACE_MS = 24 * 3_600_000;

/** Work of one call on the main thread lasts no longer than this before others have the thread. */
export const SLICE_MAX_MS = 1;
/** After a step that took so long, which could not be cut, connections have a whole turn before the work goes on. */
export const SLICE_LONG_MS = 10;

// Controllers among themselves.
/** A controller that is paused or cut off for so long is not there any more. */
export const CONTROLLER_LEASE_MS = 15_000;
export const CONTROLLER_REGISTER_AGAIN_MS = 1_000;
export const PEER_BEAT_MS = 1_000;
/** Silence after which a link to another controller is given up and dialled again. */
export const PEER_SILENCE_MAX_MS = 5_000;
export const PEER_BACKOFF_MIN_MS = 100;
export const PEER_BACKOFF_MAX_MS = 2_000;
export const PEER_CERTIFICATE_LIFETIME_MS = 24 * 3_600_000;
/** The queue of frames for another controller. Beyond it events are dropped, and a frame says so. */
export const PEER_QUEUE_MAX_FRAMES = 4_096;
export const PEER_QUEUE_MAX_BYTES = 16 * MIB;
export const PEER_SUBJECTS_MAX = 10_000;
export const PEER_HOSTS_PER_REFRESH_MAX = 1_000;
/** A command that no session takes is tried again this often. */
export const COMMAND_PLACE_AGAIN_MS = 250;
/** The same for one that was sent, once `COMMAND_REACH_MS` are over. */
export const COMMAND_PLACE_LATE_MS = 3_000;
/** The session registry names a holder; if it does not take the command within this, the host counts as unreachable. */
export const COMMAND_REACH_MS = 8_000;
/** What is stored of a command could not be read: again after this. */
export const COMMAND_READ_AGAIN_MS = 500;
/** A deadline has passed: so long for one more look at what is stored. */
export const COMMAND_LAST_LOOK_MS = 700;
/** Pieces of stored output read at once. */
export const COMMAND_PIECES_PER_READ = 64;

// The agent that runs beside a controller.
export const LOCAL_AGENT_RESTART_MIN_MS = 500;
export const LOCAL_AGENT_RESTART_MAX_MS = 30_000;
export const LOCAL_AGENT_STOP_DEADLINE_MS = 5_000;

// The process that starts all others.
export const SPAWNER_HEAP_MAX_BYTES = 64 * MIB;
/** When the controller is gone, what it started has this long to end before it is killed. */
export const SPAWNER_KILL_GRACE_MS = 5_000;

// The controller's own log file.
export const LOG_FILE_MAX_BYTES = 4 * MIB;
export const LOG_FILE_GENERATIONS = 4;

// The demonstration.
export const DEMO_DEADLINE_MS = 60_000;
export const DEMO_POLL_MS = 200;

// Groups and API permissions. A record is one value of the KvStore.
export const GROUPS_PER_TENANT_MAX = 5_000;
/** Groups that one transaction changes. */
export const GROUPS_PER_CHANGE_MAX = 50;
export const API_PERMISSIONS_PER_TENANT_MAX = 1_000;
/** So many users are read by their names; more are found among all users. */
export const USERS_READ_SINGLY_MAX = 100;
export const GROUP_NAME_MAX_BYTES = 256;
/** A record as JSON: less than `KV_VALUE_MAX_BYTES`. */
export const GROUP_RECORD_MAX_BYTES = 768 * KIB;
export const GROUP_BODY_MAX_BYTES = 2 * MIB;
/** Attempts of one change, each on what another controller wrote meanwhile. */
export const GROUP_CHANGE_ATTEMPTS_MAX = 16;
/** Attempts to read all definitions of a tenant while others change them. */
export const GROUP_READ_ATTEMPTS_MAX = 8;
/** Sets of groups whose rights are kept compiled, for each tenant. */
export const GROUP_SETS_KEPT_MAX = 1_000;
/** Users of each group that an explanation names. */
export const EXPLAINED_USERS_MAX = 100;

// Keys that seal secrets.
/** Key files are read again, and what is sealed with former keys is looked for, this often. */
export const KEY_FOLLOW_INTERVAL_MS = 15_000;
/** Every controller seals with the new key for so long before the rest is sealed anew: longer than calls take, and clocks differ. */
export const KEY_SETTLE_MS = 30_000;
/** Where all that is left has to end by itself, it is looked at again this often. */
export const KEY_LOOK_AGAIN_MS = 600_000;
/** Tenants whose things are sealed anew at the same time, each one thing after the other. */
export const KEY_TENANTS_AT_ONCE = 4;
/** A look at all that is sealed. */
export const KEY_STATUS_DEADLINE_MS = 300_000;
