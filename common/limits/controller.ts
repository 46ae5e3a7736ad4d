/** Limits of one controller, and between controllers. */

import { KIB, MIB } from "./units.ts";

// Recurring work of a controller.
export const MAINTENANCE_INTERVAL_MS = 60_000;
export const BLOB_SWEEP_INTERVAL_MS = 3_600_000;
/** Time for which unmarked content is kept: an upload marks its content only at its end. */
export const BLOB_SWEEP_GRACE_MS = 24 * 3_600_000;

/** Time for which a call may keep the main thread before others get a turn. */
export const SLICE_MAX_MS = 1;
/** After an indivisible step of this length, connections get a whole turn before the work continues. */
export const SLICE_LONG_MS = 10;
/** Items that are sorted, or merged, in one step. */
export const SORT_RUN_ITEMS = 512;

// Controllers among themselves.
/** A controller that is paused or cut off for this long counts as gone. */
export const CONTROLLER_LEASE_MS = 15_000;
export const CONTROLLER_REGISTER_AGAIN_MS = 1_000;
export const PEER_BEAT_MS = 1_000;
/** Silence after which a link to another controller is closed and dialled again. */
export const PEER_SILENCE_MAX_MS = 5_000;
export const PEER_BACKOFF_MIN_MS = 100;
export const PEER_BACKOFF_MAX_MS = 2_000;
export const PEER_CERTIFICATE_LIFETIME_MS = 24 * 3_600_000;
/** Queue of frames for another controller. When it is full, events are dropped, and a frame reports it. */
export const PEER_QUEUE_MAX_FRAMES = 4_096;
export const PEER_QUEUE_MAX_BYTES = 16 * MIB;
export const PEER_SUBJECTS_MAX = 10_000;
export const PEER_HOSTS_PER_REFRESH_MAX = 1_000;
/** Retry interval for a command that no session takes. */
export const COMMAND_PLACE_AGAIN_MS = 250;
/** Retry interval for a command that was sent, after `COMMAND_REACH_MS`. */
export const COMMAND_PLACE_LATE_MS = 3_000;
/** If the session's holder does not take the command within this time, the host counts as unreachable. */
export const COMMAND_REACH_MS = 8_000;
/** Retry interval when the stored data of a command could not be read. */
export const COMMAND_READ_AGAIN_MS = 500;
/** Time after the deadline for one last read of the stored data. */
export const COMMAND_LAST_LOOK_MS = 700;
/** Pieces of stored output per read. */
export const COMMAND_PIECES_PER_READ = 64;

// The agent that runs beside a controller.
export const LOCAL_AGENT_RESTART_MIN_MS = 500;
export const LOCAL_AGENT_RESTART_MAX_MS = 30_000;
export const LOCAL_AGENT_STOP_DEADLINE_MS = 5_000;

// The process that starts all others.
export const SPAWNER_HEAP_MAX_BYTES = 64 * MIB;
/** Time for the spawned processes to end after the controller is gone, before they are killed. */
export const SPAWNER_KILL_GRACE_MS = 5_000;

// The controller's own log file.
export const LOG_FILE_MAX_BYTES = 4 * MIB;
export const LOG_FILE_GENERATIONS = 4;
/** Longest time for which lines about calls wait in memory before they are written. */
export const LOG_LATER_MS = 100;
export const LOG_LATER_MAX_CHARACTERS = 64 * KIB;

// The demonstration.
export const DEMO_DEADLINE_MS = 60_000;
export const DEMO_POLL_MS = 200;

// Groups and API permissions. A record is one value of the KvStore.
export const GROUPS_PER_TENANT_MAX = 5_000;
/** Groups changed by one transaction. */
export const GROUPS_PER_CHANGE_MAX = 50;
export const API_PERMISSIONS_PER_TENANT_MAX = 1_000;
/** Up to this number users are read by name; more are found by reading all users. */
export const USERS_READ_SINGLY_MAX = 100;
export const GROUP_NAME_MAX_BYTES = 256;
/** Bytes of a record as JSON; less than `KV_VALUE_MAX_BYTES`. */
export const GROUP_RECORD_MAX_BYTES = 768 * KIB;
export const GROUP_BODY_MAX_BYTES = 2 * MIB;
/** Attempts of one change; each attempt starts from what another controller has just written. */
export const GROUP_CHANGE_ATTEMPTS_MAX = 16;
/** Attempts to read all definitions of a tenant while others change them. */
export const GROUP_READ_ATTEMPTS_MAX = 8;
/** Sets of groups per tenant whose compiled rights are cached. */
export const GROUP_SETS_KEPT_MAX = 1_000;
/** Users per group that an explanation names. */
export const EXPLAINED_USERS_MAX = 100;

// Keys that seal secrets.
/** Interval at which key files are read again, and data sealed with former keys is looked for. */
export const KEY_FOLLOW_INTERVAL_MS = 15_000;
/**
 * Time for which all controllers must have sealed with the new key before the rest is sealed again. Longer than calls
 * take, and than clocks differ.
 */
export const KEY_SETTLE_MS = 30_000;
/** Interval of the next look when all data left under former keys must expire by itself. */
export const KEY_LOOK_AGAIN_MS = 600_000;
/** Tenants whose data is sealed again in parallel; within a tenant one thing after another. */
export const KEY_TENANTS_AT_ONCE = 4;
/** Deadline for a look at all sealed data. */
export const KEY_STATUS_DEADLINE_MS = 300_000;
