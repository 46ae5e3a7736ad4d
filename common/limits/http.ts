/** Limits of the HTTP interface and its clients. */

import { KIB, MIB } from "./units.ts";

// HTTP.
/** Connections that wait to be accepted; the system may allow fewer. */
export const HTTP_BACKLOG_CONNECTIONS = 4_096;
export const HTTP_BODY_MAX_BYTES = 16 * MIB;
/** Files of one call that go straight into the store. */
export const HTTP_UPLOAD_MAX_BYTES = 8_192 * MIB;
/** Files of one call that are copied to the disk of the controller until the call ends. */
export const HTTP_COPIED_UPLOAD_MAX_BYTES = 512 * MIB;
/** Bytes of a form that may be no bytes of files: fields, and heads of parts. A form that announces more has files. */
export const HTTP_FORM_BESIDE_FILES_BYTES = 256 * KIB;
export const HTTP_UPLOAD_MAX_FILES = 256;
export const HTTP_FORM_MAX_FIELDS = 2_000;
/** Parts of a multipart body, and bytes of a part's head; limits of its parser. */
export const HTTP_PARTS_MAX = HTTP_FORM_MAX_FIELDS + HTTP_UPLOAD_MAX_FILES;
export const HTTP_PART_HEAD_MAX_BYTES = 80 * KIB;
/** Warnings per answer, characters of a warning, and characters of a client's name that a warning shows. */
export const HTTP_WARNINGS_MAX = 20;
export const HTTP_WARNING_MAX_CHARACTERS = 500;
export const HTTP_WARNING_NAME_MAX_CHARACTERS = 64;
/** Characters of the warnings header. Clients and proxies refuse answers with 8 KiB or more of headers. */
export const HTTP_WARNINGS_HEADER_MAX_CHARACTERS = 4 * KIB;
/** Details of a failure, as JSON. */
export const HTTP_DETAILS_MAX_CHARACTERS = 8 * KIB;
export const HTTP_CALL_DEADLINE_MS = 120_000;
export const TENANT_CALLS_IN_FLIGHT_MAX = 256;
export const TENANT_CALLS_WAITING_MAX = 1_024;
/** Calls that begin, and queries that continue, per turn of the event loop; with more, tenants take turns. */
export const CALLS_BEGUN_PER_TURN = 4;
/**
 * The same while several tenants call, so that a tenant waits for few calls of others. A tenant counts for this many
 * turns after its last call.
 */
export const CALLS_BEGUN_PER_TURN_SHARED = 1;
export const CALLS_SHARED_TURNS = 10_000;
/** Body of a public endpoint, unless the endpoint sets another limit. */
export const HTTP_PUBLIC_BODY_MAX_BYTES = 8 * KIB;
/** If nothing else identifies the caller, the session must be within this many bytes from the beginning of the body. */
export const HTTP_SESSION_WITHIN_BYTES = 8 * KIB;
/**
 * Bytes of a multipart form that may arrive before its session is seen: the network delivers several fields together.
 */
export const HTTP_STRANGER_FORM_MAX_BYTES = MIB;
/** Body of an endpoint that takes names and settings. */
export const HTTP_SMALL_BODY_MAX_BYTES = 64 * KIB;
/**
 * Memory that the bodies of all calls of one controller may use together, in decoded form: default and minimum of the
 * setting `body_memory_mib`.
 */
export const HTTP_BODY_MEMORY_DEFAULT_MIB = 1_024;
export const HTTP_BODY_MEMORY_MIN_MIB = 64;
/** Fractions of it for one caller, and for all callers of a tenant together. */
export const HTTP_BODY_MEMORY_OF_CALLER = 0.5;
export const HTTP_BODY_MEMORY_OF_TENANT = 0.75;
/** Bytes of each call of an unknown caller that count only for its address: a sign-in form fits. */
export const HTTP_STRANGER_FREE_BYTES = 32 * KIB;
/** Seconds after which a refused caller may come back. */
export const HTTP_BODY_MEMORY_RETRY_SECONDS = 2;
/** Memory per byte of a body while it is read: its pieces, the whole, and its text. */
export const HTTP_BODY_READ_FACTOR = 3;
/**
 * Memory of each decoded object, list, member, element and string of a JSON text, in addition to its characters.
 * Measured with V8 of Node 20: 56 to 208 bytes for an object with its first member, 56 for a list and 70 for a further
 * member. The rest is for the copy that is converted to a schema.
 */
export const HTTP_JSON_OBJECT_BYTES = 160;
export const HTTP_JSON_ARRAY_BYTES = 112;
export const HTTP_JSON_MEMBER_BYTES = 80;
export const HTTP_JSON_ELEMENT_BYTES = 16;
export const HTTP_JSON_STRING_BYTES = 24;
/** Memory per character of the worst JSON text by these figures: a list of empty objects. */
export const HTTP_JSON_WORST_FACTOR = 64;
/** Memory per line of a text that is not JSON, after it is split. */
export const HTTP_TEXT_LINE_BYTES = 32;
/** Texts up to this size count as the worst JSON text, because examining them costs more. */
export const HTTP_SMALL_BODY_MAX_CHARACTERS = 4 * KIB;
/** Characters of a large text that are examined per turn of the event loop. */
export const HTTP_BODY_WEIGHED_PIECE_CHARACTERS = MIB;
/** Deadline for the whole request to arrive, head and body. An upload that goes into the store begins it anew. */
export const HTTP_RECEIVE_DEADLINE_MS = 600_000;
/** Deadline for the whole request of such an upload; 8 GiB need 0.1 MB/s. */
export const HTTP_UPLOAD_DEADLINE_MS = 24 * 3_600_000;
export const HTTP_HEAD_DEADLINE_MS = 30_000;
/**
 * Deadline for a body from memory, a file or a pipe, after its head is sent. Each piece of a stored content begins it
 * anew. Rows have the deadline of their call.
 */
export const HTTP_SEND_DEADLINE_MS = 3_600_000;
/** Silence after which a peer is cut off: it reads nothing of an answer, or sends nothing of its announced body. */
export const HTTP_SILENCE_MS = 60_000;
/** Interval at which connections are checked for silence. */
export const HTTP_SILENCE_CHECK_MS = 5_000;
/** Texts of at least this size are compressed for clients that accept it. */
export const HTTP_COMPRESS_MIN_BYTES = 4 * KIB;
/** Revisions in one `If-Match`. */
export const HTTP_ETAGS_MAX = 100;
/** Size of the pieces sent to the network. Only few of them wait for a slow reader. */
export const HTTP_PIECE_BYTES = 64 * KIB;
/** Interval at which deadlines of connections are checked. */
export const HTTP_DEADLINE_CHECK_MS = 1_000;
export const HTTP_CONNECTIONS_MAX = 16_384;
/** Calls that a client may send over one connection before their answers, and calls of them that run concurrently. */
export const HTTP_PIPELINED_MAX = 256;
export const HTTP_PIPELINED_AT_ONCE_MAX = 4;
/** Unauthenticated calls per address. */
export const STRANGER_CALLS_IN_FLIGHT_MAX = 64;
export const STRANGER_CALLS_WAITING_MAX = 256;
export const HTTP_KEEP_ALIVE_MS = 65_000;
export const HTTP_PATH_PARAMETER_MAX_CHARACTERS = 4_096;
export const HTTP_JSON_DEPTH_MAX = 64;
/** Blanks allowed before a JSON object or list. */
export const JSON_LEADING_BLANKS_MAX = 4_096;
/** Limits per JSON text: members of objects, elements of lists, and characters of one string. */
export const HTTP_JSON_MEMBERS_MAX = 100_000;
export const HTTP_JSON_ELEMENTS_MAX = 500_000;
export const HTTP_JSON_STRING_MAX_CHARACTERS = 16 * MIB;
/** Longer lists, and JSON values with more values at all depths, are converted to their schema in slices. */
export const HTTP_TURN_LIST_MAX_ITEMS = 1_000;
/** JSON texts and forms up to this size are decoded in one turn of the event loop, larger ones in slices. */
export const HTTP_TURN_TEXT_MAX_CHARACTERS = 64 * KIB;
/** Rows up to this size are sent as a whole, more are streamed. */
export const HTTP_ROWS_BUFFER_BYTES = 64 * KIB;
export const HTTP_EVENT_STREAMS_PER_TENANT_MAX = 1_000;
/** Interval at which an idle event stream sends a sign of life and checks that its reader may still listen. */
export const HTTP_EVENTS_HEARTBEAT_MS = 15_000;
/** Time that clients of event streams wait before they reconnect. */
export const HTTP_EVENTS_RETRY_MS = 3_000;
/** Bytes per piece for a reader of a stored, growing stream. */
export const FOLLOW_PIECE_BYTES = 64 * KIB;
/** Interval at which data appended by other controllers is looked for. */
export const FOLLOW_POLL_MS = 1_000;
export const WEBSOCKETS_PER_TENANT_MAX = 1_000;
/** Unread data after which a slow receiver is closed. */
export const WEBSOCKET_QUEUE_MAX_BYTES = MIB;
export const WEBSOCKET_QUEUE_MAX_FRAMES = 4_096;
export const WEBSOCKET_RECEIVED_MAX_BYTES = 64 * KIB;
/** Bytes of WebSocket input parsed per turn of the event loop. */
export const WEBSOCKET_PIECE_BYTES = 512;
export const WEBSOCKET_PING_MS = 30_000;
export const WEBSOCKET_CLOSE_GRACE_MS = 5_000;
/** Time for which a client with a refused WebSocket keeps its connection; no stop waits longer for it. */
export const WEBSOCKET_REFUSED_GRACE_MS = 1_000;

// Sign-in.
export const USERNAME_MAX_CHARACTERS = 128;
/** Attempts of one change of a user; each attempt starts from what others have just written. */
export const USER_CHANGE_ATTEMPTS_MAX = 16;
/** Users per tenant. Users made at the same moment are counted one after another. */
export const USERS_PER_TENANT_MAX = 20_000;
export const ORGANIZATIONS_PER_TENANT_MAX = 2_000;
/** Depth of organisations, without the root. */
export const USER_TREE_DEPTH_MAX = 32;
/** Attempts of one change of the tree of users; each attempt starts from what others have just written. */
export const USER_TREE_ATTEMPTS_MAX = 32;
/** Characters of a start page's path. */
export const USER_HOME_MAX_CHARACTERS = 1_000;
export const PASSWORD_MAX_BYTES = KIB;
/**
 * Only these first characters count for the strength of a password, because the estimate takes more than linear time.
 */
export const PASSWORD_ESTIMATED_MAX_CHARACTERS = 48;
/** Scale from 0 to 4; 3 means 10^8 guesses. */
export const PASSWORD_SCORE_MIN = 3;
export const PASSWORD_MIN_CHARACTERS = 8;
export const SESSION_IDLE_MS = 12 * 3_600_000;
export const SESSION_REMEMBERED_MS = 30 * 24 * 3_600_000;
/** Maximum duration of a session, even if it is in constant use. */
export const SESSION_MAX_MS = 90 * 24 * 3_600_000;
/** Minimum interval between two writes of the sliding end. */
export const SESSION_TOUCH_MS = 60_000;
export const SESSION_SWEEP_MS = 600_000;
export const BASIC_CACHE_MS = 60_000;
export const BASIC_CACHE_MAX_ENTRIES = 10_000;
/** Maximum age of cached sessions and users: a change at another controller takes effect within this time. */
export const SIGN_IN_CACHE_MS = 1_000;
export const SIGN_IN_CACHE_MAX_ENTRIES = 10_000;
export const TOKENS_PER_USER_MAX = 100;
/** Users, and tokens, that the preview of a sign-in policy names. */
export const POLICY_STOPS_SHOWN_MAX = 1_000;
export const TOKEN_DAYS_DEFAULT = 90;
export const TOKEN_DAYS_MAX = 366;
/** Grants to which a token can be limited. */
export const TOKEN_SCOPES_MAX = 64;
/** Time after which a broken watch of users restarts. */
export const USER_WATCH_AGAIN_MS = 1_000;
export const PASSWORD_CHECKS_IN_FLIGHT_MAX = 2;
export const PASSWORD_CHECKS_WAITING_MAX = 64;
/** Failures without a delay: per user and address, and per address. */
export const SIGN_IN_FREE_FAILURES_PER_USER = 5;
export const SIGN_IN_FREE_FAILURES_PER_ADDRESS = 50;
export const SIGN_IN_DELAY_MIN_MS = 1_000;
export const SIGN_IN_DELAY_MAX_MS = 300_000;
export const SIGN_IN_FORGET_MS = 900_000;
export const SIGN_IN_TABLE_MAX_ENTRIES = 10_000;
/** Attempts to count a failure in the store, where other controllers count, too. */
export const SIGN_IN_COUNT_ATTEMPTS_MAX = 50;
/** Time from the password to the code of the second factor. */
export const SIGN_IN_TICKET_MS = 300_000;
export const SECOND_FACTOR_SECRET_BYTES = 20;
export const SECOND_FACTOR_PERIOD_SECONDS = 30;
/** Number of periods by which the clock of a device may differ. */
export const SECOND_FACTOR_STEPS_OFF = 1;
/** Time from the secret to the code that confirms it. */
export const SECOND_FACTOR_PENDING_MS = 900_000;
/** Lifetime of a password set by another user, in tenants where first passwords must be changed. */
export const FIRST_PASSWORD_MS = 7 * 24 * 3_600_000;
/** Wrong codes of one user without a delay, from all addresses together. */
export const SECOND_FACTOR_FREE_FAILURES = 10;
export const SECOND_FACTOR_DELAY_MIN_MS = 10_000;
export const SECOND_FACTOR_DELAY_MAX_MS = 900_000;
/** Time from leaving for the OpenID provider to returning. */
export const OPENID_TICKET_MS = 600_000;
/** Maximum difference between the clocks of controller and provider. */
export const OPENID_CLOCK_TOLERANCE_SECONDS = 30;
/** Deadline of one request to the provider, up to the end of its answer. */
export const OPENID_REQUEST_DEADLINE_MS = 5_000;
export const OPENID_ANSWER_MAX_BYTES = MIB;
/** Lifetime of the provider's metadata, and retry interval after a failure to read it. */
export const OPENID_METADATA_KEPT_MS = 3_600_000;
export const OPENID_METADATA_AGAIN_MS = 5_000;
/** Concurrent checks of sign-ins by the provider; each sends requests to it. */
export const OPENID_CHECKS_AT_ONCE_MAX = 32;
export const OPENID_SUBJECT_MAX_CHARACTERS = 255;
/** Groups of the provider that are considered per user. */
export const OPENID_GROUPS_MAX = 2_000;
export const RECOVERY_CODES = 10;
export const RECOVERY_CODE_BYTES = 16;

// Tenants.
export const TENANTS_MAX = 10_000;
/**
 * Attempts to register a tenant. An attempt fails if a tenant of that name existed at the write but was gone at the
 * read that followed.
 */
export const TENANT_REGISTER_ATTEMPTS_MAX = 8;
/** Time for which the data of a deleted tenant can be restored. */
export const TENANT_GRACE_MS = 7 * 24 * 3_600_000;
/** Time a deletion waits for other controllers to confirm that they have stopped all work of the tenant. */
export const TENANT_LEAVE_WAIT_MS = 10_000;
/** Time for one part of a controller to stop its work for a deleted tenant. After it the stores are closed anyway. */
export const TENANT_LEAVE_STEP_MS = 3_000;
/** Silence after which a controller counts as gone: it serves no caller without the store. */
export const TENANT_FOLLOWER_LEASE_MS = 10_000;
/** Retry interval of a controller that lost its place among the followers of tenants. */
export const TENANT_FOLLOWER_AGAIN_MS = 1_000;
/** Characters of each text in a tenant's record. */
export const TENANT_TEXT_MAX_CHARACTERS = 1_024;
/** Bytes of `icon`, and of `logo`. */
export const TENANT_IMAGE_MAX_BYTES = 256 * 1_024;
/** Bytes of a tenant's `config` as JSON. */
export const TENANT_CONFIG_MAX_BYTES = 16 * 1_024;
/** Bytes of a call that makes or changes a tenant, including its images. */
export const TENANT_BODY_MAX_BYTES = 1_024 * 1_024;
/**
 * Growth of a tenant with a quota that only one controller knows of. It reports more to the others before its next
 * write. A tenant can exceed its quota by at most this, times the number of controllers.
 */
export const TENANT_USE_UNTOLD_MAX_OBJECTS = 1_000;
export const TENANT_USE_UNTOLD_MAX_BYTES = 4 * MIB;
/** Interval at which the data of a tenant with a quota is counted again, so that expired and swept data is noticed. */
export const TENANT_USE_MEASURE_INTERVAL_MS = 900_000;
/** Objects of a tenant counted per second, so that the count does not slow down others. */
export const TENANT_USE_OBJECTS_PER_SECOND = 50_000;
/** Minimum interval at which a call that is refused for lack of room reads the use reported by others again. */
export const TENANT_USE_REREAD_MS = 1_000;
/** Attempts to report growth. An attempt fails if another controller reports its own at the same time. */
export const TENANT_USE_TELL_ATTEMPTS_MAX = 16;
/** Ids of a batch or an import that are looked up when little room is left. More ids count as new objects. */
export const ROOM_LOOKUP_IDS_MAX = 10_000;
/** Making a tenant creates tables, which takes a cluster seconds. */
export const TENANT_MAKE_DEADLINE_MS = 120_000;

// Audit.
export const AUDIT_BATCH_MAX_ENTRIES = 500;
export const AUDIT_WAITING_MAX_ENTRIES = 10_000;
/** Unwritten entries of one host call of a script while the call continues. */
export const AUDIT_RUN_ENTRIES_WAITING_MAX = 100;
/** Names of changed objects that one entry lists. */
export const AUDIT_NAMES_MAX = 20;
export const AUDIT_OBJECT_MAX_CHARACTERS = 1_024;
/** Maximum characters of each of the user, the action and the object of an entry; longer texts are cut off. */
export const AUDIT_TEXT_MAX_CHARACTERS = 16 * KIB;
export const AUDIT_KEEP_SECONDS = 400 * 24 * 3_600;
export const AUDIT_PROBE_MS = 2_000;
/** Time a call waits for another attempt after a write of entries has failed. */
export const AUDIT_PATIENCE_MS = 1_000;
/** Newest entries per tenant that a start verifies. */
export const AUDIT_VERIFIED_AT_START_ENTRIES = 1_000;
/** Entries of a verification that reports no progress. A streaming verification has no limit. */
export const AUDIT_VERIFY_MAX_ENTRIES = 2_000_000;
/** Entries between two progress lines of a verification. */
export const AUDIT_PROGRESS_ENTRIES = 10_000;
/**
 * Interval at which the newest digests are written to the file outside the store. So much of a trail can be cut off
 * unnoticed.
 */
export const AUDIT_ANCHOR_INTERVAL_MS = 60_000;
export const AUDIT_ANCHOR_READ_BYTES = 64 * 1_024;
/** Runs whose digests one call may provide. */
export const AUDIT_ANCHORS_GIVEN_MAX = 10_000;
/**
 * Interval at which a controller seals the heads of its runs. So much of a run has no head if the controller is killed.
 */
export const AUDIT_HEAD_INTERVAL_MS = 60_000;
/**
 * Time that the entries of one run without a head may span; silences count at most one head interval. More means that
 * the heads were restored to an earlier state.
 */
export const AUDIT_HEAD_LATE_MS = 300_000;
/** Interval of a head's marks: each names the first entry of its interval, and so which entries may have expired. */
export const AUDIT_MARK_INTERVAL_MS = 24 * 3_600_000;
/** Time before their expiry at which entries may be gone: clocks differ, and reading a trail takes time. */
export const AUDIT_EXPIRY_SLACK_MS = 3_600_000;
/** Maximum difference between the clocks of controllers when the order of events is checked. */
export const AUDIT_CLOCK_SLACK_MS = 300_000;
/** Heads in the entry that is written every interval. With more, the older half moves to a page. */
export const AUDIT_HEADS_TOGETHER_MAX = 64;
/** Bytes of heads per page; less than `KV_VALUE_MAX_BYTES`. */
export const AUDIT_HEADS_PAGE_MAX_BYTES = 256 * KIB;
/** Attempts to write heads. An attempt fails if another controller writes at the same time. */
export const AUDIT_HEAD_ATTEMPTS_MAX = 16;
/** Tenants whose heads are written in parallel. */
export const AUDIT_HEAD_WRITES_MAX = 8;
/** Faults of heads that are kept; the oldest ones stay. */
export const AUDIT_HEAD_FAULTS_MAX = 20;

// Secrets.
/** Time a start waits for the external command that provides the keys. */
export const SECRET_KEY_COMMAND_DEADLINE_MS = 15_000;
export const SECRET_KEY_TEXT_MAX_BYTES = 64 * 1_024;

// Licences.
/** Bytes of a licence document. */
export const LICENCE_MAX_BYTES = 16 * 1_024;
/** Attempts to replace a licence. An attempt fails if another import runs at the same moment. */
export const LICENCE_IMPORT_ATTEMPTS_MAX = 8;
/** Days before the end of a licence at which warnings begin. */
export const LICENCE_WARNED_DAYS = 30;
/** Fraction of a limit at which warnings begin. */
export const LICENCE_WARNED_SHARE = 0.9;
