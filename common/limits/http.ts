/** Of calls from outside and of those who make them. */

import { KIB, MIB } from "./units.ts";

// HTTP.
/** Connections that wait to be accepted; the system may allow fewer. */
export const HTTP_BACKLOG_CONNECTIONS = 4_096;
export const HTTP_BODY_MAX_BYTES = 16 * MIB;
export const HTTP_UPLOAD_MAX_BYTES = 512 * MIB;
export const HTTP_UPLOAD_MAX_FILES = 256;
export const HTTP_FORM_MAX_FIELDS = 2_000;
export const HTTP_CALL_DEADLINE_MS = 120_000;
export const TENANT_CALLS_IN_FLIGHT_MAX = 256;
export const TENANT_CALLS_WAITING_MAX = 1_024;
/** Calls that begin, and queries that go on, in one turn of the event loop; with more, those of each tenant in rotation. */
export const CALLS_BEGUN_PER_TURN = 4;
/** While several tenants call: each is to wait for few of the others' calls. A tenant counts for so many turns after its last call. */
export const CALLS_BEGUN_PER_TURN_SHARED = 1;
export const CALLS_SHARED_TURNS = 10_000;
/** A body that comes before anybody is signed in, such as a form that carries its session. */
export const HTTP_ANONYMOUS_BODY_MAX_BYTES = MIB;
/** For the whole request to arrive, head and body. */
export const HTTP_RECEIVE_DEADLINE_MS = 600_000;
export const HTTP_HEAD_DEADLINE_MS = 30_000;
export const HTTP_KEEP_ALIVE_MS = 65_000;
export const HTTP_PATH_PARAMETER_MAX_CHARACTERS = 4_096;
export const HTTP_JSON_DEPTH_MAX = 64;
/** Rows up to this size are sent at once; beyond it they are streamed. */
export const HTTP_ROWS_BUFFER_BYTES = 64 * KIB;
export const WEBSOCKETS_PER_TENANT_MAX = 1_000;
/** What a slow receiver may leave unread before it is closed. */
export const WEBSOCKET_QUEUE_MAX_BYTES = MIB;
export const WEBSOCKET_QUEUE_MAX_FRAMES = 4_096;
export const WEBSOCKET_RECEIVED_MAX_BYTES = 64 * KIB;
export const WEBSOCKET_PING_MS = 30_000;
export const WEBSOCKET_CLOSE_GRACE_MS = 5_000;

// Sign-in.
export const USERNAME_MAX_CHARACTERS = 128;
export const PASSWORD_MAX_BYTES = KIB;
export const PASSWORD_MIN_CHARACTERS = 8;
export const SESSION_IDLE_MS = 12 * 3_600_000;
export const SESSION_REMEMBERED_MS = 30 * 24 * 3_600_000;
/** However busy it is, a session ends after this. */
export const SESSION_MAX_MS = 90 * 24 * 3_600_000;
/** The sliding end is written at most this often. */
export const SESSION_TOUCH_MS = 60_000;
export const SESSION_SWEEP_MS = 600_000;
export const BASIC_CACHE_MS = 60_000;
export const BASIC_CACHE_MAX_ENTRIES = 10_000;
/** Sessions and users are read from the store again after this long: so late a change made at another controller may take effect. */
export const SIGN_IN_CACHE_MS = 1_000;
export const SIGN_IN_CACHE_MAX_ENTRIES = 10_000;
export const PASSWORD_CHECKS_IN_FLIGHT_MAX = 2;
export const PASSWORD_CHECKS_WAITING_MAX = 64;
/** Failures that cost nothing yet, for one user from one address and for one address. */
export const SIGN_IN_FREE_FAILURES_PER_USER = 5;
export const SIGN_IN_FREE_FAILURES_PER_ADDRESS = 50;
export const SIGN_IN_DELAY_MIN_MS = 1_000;
export const SIGN_IN_DELAY_MAX_MS = 300_000;
export const SIGN_IN_FORGET_MS = 900_000;
export const SIGN_IN_TABLE_MAX_ENTRIES = 10_000;

// Tenants.
export const TENANTS_MAX = 10_000;

// Audit.
export const AUDIT_BATCH_MAX_ENTRIES = 500;
export const AUDIT_WAITING_MAX_ENTRIES = 10_000;
export const AUDIT_KEEP_SECONDS = 400 * 24 * 3_600;
export const AUDIT_PROBE_MS = 2_000;
export const AUDIT_VERIFY_MAX_ENTRIES = 2_000_000;
