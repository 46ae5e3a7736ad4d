/** Limits of the HTTP interface and its clients. */

import { KIB, MIB } from "./units.ts";

// HTTP.
/** Connections that wait to be accepted; the system may allow fewer. */
export const HTTP_BACKLOG_CONNECTIONS = 4_096;
export const HTTP_BODY_MAX_BYTES = 16 * MIB;
export const HTTP_UPLOAD_MAX_BYTES = 512 * MIB;
export const HTTP_UPLOAD_MAX_FILES = 256;
export const HTTP_FORM_MAX_FIELDS = 2_000;
/** Parts of a multipart body, and the bytes of the head of one, as its parser bounds them. */
export const HTTP_PARTS_MAX = HTTP_FORM_MAX_FIELDS + HTTP_UPLOAD_MAX_FILES;
export const HTTP_PART_HEAD_MAX_BYTES = 80 * KIB;
/** The warnings in one answer, and how much of a name that a client sent is shown in one. */
export const HTTP_WARNINGS_MAX = 20;
export const HTTP_WARNING_MAX_CHARACTERS = 500;
export const HTTP_WARNING_NAME_MAX_CHARACTERS = 64;
/** The header of warnings. Clients and proxies refuse an answer whose headers together have 8 KiB or more. */
export const HTTP_WARNINGS_HEADER_MAX_CHARACTERS = 4 * KIB;
export const HTTP_CALL_DEADLINE_MS = 120_000;
export const TENANT_CALLS_IN_FLIGHT_MAX = 256;
export const TENANT_CALLS_WAITING_MAX = 1_024;
/**
 * Calls that begin, and queries that go on, in one turn of the event loop; with more, those of each tenant in rotation.
 */
export const CALLS_BEGUN_PER_TURN = 4;
/**
 * While several tenants call: each is to wait for few of the others' calls. A tenant counts for so many turns after its
 * last call.
 */
export const CALLS_BEGUN_PER_TURN_SHARED = 1;
export const CALLS_SHARED_TURNS = 10_000;
/** A body of an endpoint that is open to everybody, unless the endpoint says more. */
export const HTTP_PUBLIC_BODY_MAX_BYTES = 8 * KIB;
/** The session of a caller who is known by nothing else stands in so many first bytes of the body. */
export const HTTP_SESSION_WITHIN_BYTES = 8 * KIB;
/** A multipart form may bring so much before its session is seen: the network brings more than one field at once. */
export const HTTP_STRANGER_FORM_MAX_BYTES = MIB;
/** A body of an endpoint that takes names and settings. */
export const HTTP_SMALL_BODY_MAX_BYTES = 64 * KIB;
/**
 * Memory that the bodies of all calls of one controller may hold at once, in the form they take once they are decoded:
 * of the setting `body_memory_mib` the usual value and the least.
 */
export const HTTP_BODY_MEMORY_DEFAULT_MIB = 1_024;
export const HTTP_BODY_MEMORY_MIN_MIB = 64;
/** The part of it that one caller has, and the one that all callers of a tenant have together. */
export const HTTP_BODY_MEMORY_OF_CALLER = 0.5;
export const HTTP_BODY_MEMORY_OF_TENANT = 0.75;
/** Bytes of each call of a stranger that count for its address alone: a form that signs in fits. */
export const HTTP_STRANGER_FREE_BYTES = 32 * KIB;
/** A refused caller is asked to come back after this long. */
export const HTTP_BODY_MEMORY_RETRY_SECONDS = 2;
/** Memory for each byte of a body while it is read: its pieces, all of them as one, and their text. */
export const HTTP_BODY_READ_FACTOR = 3;
/**
 * Memory that each object, list, member, element and string of a JSON text takes once it is decoded, besides its
 * characters. V8 of Node 20 was measured at 56 to 208 bytes for an object with its first member, 56 for a list and 70 for
 * a further member; the rest is for the copy that fits the values to a schema.
 */
export const HTTP_JSON_OBJECT_BYTES = 160;
export const HTTP_JSON_ARRAY_BYTES = 112;
export const HTTP_JSON_MEMBER_BYTES = 80;
export const HTTP_JSON_ELEMENT_BYTES = 16;
export const HTTP_JSON_STRING_BYTES = 24;
/** Memory for each character of the worst JSON text by these figures: a list of empty objects. */
export const HTTP_JSON_WORST_FACTOR = 64;
/** Memory that each line of a text takes that is not JSON, once the text is split. */
export const HTTP_TEXT_LINE_BYTES = 32;
/** Texts up to this size count as the worst JSON text: that costs less than to look at them. */
export const HTTP_SMALL_BODY_MAX_CHARACTERS = 4 * KIB;
/** Characters of a large text that are looked at in one turn of the event loop. */
export const HTTP_BODY_WEIGHED_PIECE_CHARACTERS = MIB;
/** For the whole request to arrive, head and body. */
export const HTTP_RECEIVE_DEADLINE_MS = 600_000;
export const HTTP_HEAD_DEADLINE_MS = 30_000;
/** For a body from memory, a file or a pipe, once its head is sent; rows stay under the deadline of their call. */
export const HTTP_SEND_DEADLINE_MS = 3_600_000;
/** A peer that reads nothing of what is sent to it, or sends nothing of a body it announced, is cut off. */
export const HTTP_SILENCE_MS = 60_000;
/** Connections are looked at this often. */
export const HTTP_SILENCE_CHECK_MS = 5_000;
/** Texts from this size on are compressed for clients that take it. */
export const HTTP_COMPRESS_MIN_BYTES = 4 * KIB;
/** What is sent goes to the network in pieces of this size, and few of them wait for a slow reader. */
export const HTTP_PIECE_BYTES = 64 * KIB;
/** Deadlines of connections are looked at this often. */
export const HTTP_DEADLINE_CHECK_MS = 1_000;
export const HTTP_CONNECTIONS_MAX = 16_384;
/**
 * Calls a client may send over one connection before it has the answers, and of them those that are worked on at once.
 */
export const HTTP_PIPELINED_MAX = 256;
export const HTTP_PIPELINED_AT_ONCE_MAX = 4;
/** Unauthenticated calls of one address. */
export const STRANGER_CALLS_IN_FLIGHT_MAX = 64;
export const STRANGER_CALLS_WAITING_MAX = 256;
export const HTTP_KEEP_ALIVE_MS = 65_000;
export const HTTP_PATH_PARAMETER_MAX_CHARACTERS = 4_096;
export const HTTP_JSON_DEPTH_MAX = 64;
/** So many blanks may stand before a JSON object or list. */
export const JSON_LEADING_BLANKS_MAX = 4_096;
/** One JSON text has at most so many members of objects, elements of lists, and characters in one string. */
export const HTTP_JSON_MEMBERS_MAX = 100_000;
export const HTTP_JSON_ELEMENTS_MAX = 500_000;
export const HTTP_JSON_STRING_MAX_CHARACTERS = 16 * MIB;
/** A list of more items, or a JSON value of more values in all depths, is made to fit its schema in slices. */
export const HTTP_TURN_LIST_MAX_ITEMS = 1_000;
/** A JSON text or a form up to this size is decoded in one turn of the event loop, a larger one in slices. */
export const HTTP_TURN_TEXT_MAX_CHARACTERS = 64 * KIB;
/** Rows up to this size are sent at once; beyond it they are streamed. */
export const HTTP_ROWS_BUFFER_BYTES = 64 * KIB;
export const HTTP_EVENT_STREAMS_PER_TENANT_MAX = 1_000;
/**
 * The interval at which an idle event stream sends a sign of life and checks that its reader still has the right to
 * listen.
 */
export const HTTP_EVENTS_HEARTBEAT_MS = 15_000;
/** Clients of event streams wait this long before they connect again. */
export const HTTP_EVENTS_RETRY_MS = 3_000;
/** A reader of what is stored and grows gets so much at once. */
export const FOLLOW_PIECE_BYTES = 64 * KIB;
/** What other controllers append to it is looked for this often. */
export const FOLLOW_POLL_MS = 1_000;
export const WEBSOCKETS_PER_TENANT_MAX = 1_000;
/** What a slow receiver may leave unread before it is closed. */
export const WEBSOCKET_QUEUE_MAX_BYTES = MIB;
export const WEBSOCKET_QUEUE_MAX_FRAMES = 4_096;
export const WEBSOCKET_RECEIVED_MAX_BYTES = 64 * KIB;
/** Bytes of WebSocket input that one turn of the event loop parses. */
export const WEBSOCKET_PIECE_BYTES = 512;
export const WEBSOCKET_PING_MS = 30_000;
export const WEBSOCKET_CLOSE_GRACE_MS = 5_000;
/** A client whose WebSocket was refused keeps its connection so long, and no stop waits longer for it. */
export const WEBSOCKET_REFUSED_GRACE_MS = 1_000;

// Sign-in.
export const USERNAME_MAX_CHARACTERS = 128;
/** Attempts of one change of a user, each on what others wrote meanwhile. */
export const USER_CHANGE_ATTEMPTS_MAX = 16;
/** Users of one tenant; those made at the same moment count one after the other. */
export const USERS_PER_TENANT_MAX = 20_000;
export const ORGANIZATIONS_PER_TENANT_MAX = 2_000;
/** Organisations above one another, the root apart. */
export const USER_TREE_DEPTH_MAX = 32;
/** Attempts of one change of the tree of users, each on the tree that others left. */
export const USER_TREE_ATTEMPTS_MAX = 32;
/** Length of a start page's path. */
export const USER_HOME_MAX_CHARACTERS = 1_000;
export const PASSWORD_MAX_BYTES = KIB;
/** The strength of a password is that of its first characters: the estimate takes more than linear time. */
export const PASSWORD_ESTIMATED_MAX_CHARACTERS = 48;
/** From 0 to 4: 3 stands for 10^8 guesses. */
export const PASSWORD_SCORE_MIN = 3;
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
/**
 * Sessions and users are read from the store again after this long: so late a change made at another controller may
 * take effect.
 */
export const SIGN_IN_CACHE_MS = 1_000;
export const SIGN_IN_CACHE_MAX_ENTRIES = 10_000;
export const TOKENS_PER_USER_MAX = 100;
/** Users, and tokens, that the preview of a sign-in policy names. */
export const POLICY_STOPS_SHOWN_MAX = 1_000;
export const TOKEN_DAYS_DEFAULT = 90;
export const TOKEN_DAYS_MAX = 366;
/** Grants a token is confined to. */
export const TOKEN_SCOPES_MAX = 64;
/** A watch of users that broke begins again after this long. */
export const USER_WATCH_AGAIN_MS = 1_000;
export const PASSWORD_CHECKS_IN_FLIGHT_MAX = 2;
export const PASSWORD_CHECKS_WAITING_MAX = 64;
/** Failures that cost nothing yet, for one user from one address and for one address. */
export const SIGN_IN_FREE_FAILURES_PER_USER = 5;
export const SIGN_IN_FREE_FAILURES_PER_ADDRESS = 50;
export const SIGN_IN_DELAY_MIN_MS = 1_000;
export const SIGN_IN_DELAY_MAX_MS = 300_000;
export const SIGN_IN_FORGET_MS = 900_000;
export const SIGN_IN_TABLE_MAX_ENTRIES = 10_000;
/** A failure is counted in the store, beside those that other controllers count, so often at most. */
export const SIGN_IN_COUNT_ATTEMPTS_MAX = 50;
/** From the password to the code of the second factor. */
export const SIGN_IN_TICKET_MS = 300_000;
export const SECOND_FACTOR_SECRET_BYTES = 20;
export const SECOND_FACTOR_PERIOD_SECONDS = 30;
/** So many periods the clock of a device may be off. */
export const SECOND_FACTOR_STEPS_OFF = 1;
/** From the secret to the code that confirms it. */
export const SECOND_FACTOR_PENDING_MS = 900_000;
/** How long a password that somebody else set signs in, where a tenant has first passwords for once. */
export const FIRST_PASSWORD_MS = 7 * 24 * 3_600_000;
/** Wrong codes of one user that cost nothing yet, from wherever they come. */
export const SECOND_FACTOR_FREE_FAILURES = 10;
export const SECOND_FACTOR_DELAY_MIN_MS = 10_000;
export const SECOND_FACTOR_DELAY_MAX_MS = 900_000;
/** From the way to the OpenID provider to the way back. */
export const OPENID_TICKET_MS = 600_000;
/** So far the clocks of controller and provider may be apart. */
export const OPENID_CLOCK_TOLERANCE_SECONDS = 30;
/** One request to the provider, from its beginning to the end of its answer. */
export const OPENID_REQUEST_DEADLINE_MS = 5_000;
export const OPENID_ANSWER_MAX_BYTES = MIB;
/** What the provider says of itself is read again after this long; after a failure, after this long. */
export const OPENID_METADATA_KEPT_MS = 3_600_000;
export const OPENID_METADATA_AGAIN_MS = 5_000;
/** Sign-ins by the provider that are being checked at once: each makes requests to it. */
export const OPENID_CHECKS_AT_ONCE_MAX = 32;
export const OPENID_SUBJECT_MAX_CHARACTERS = 255;
/** Groups of the provider that are looked at, of one user. */
export const OPENID_GROUPS_MAX = 2_000;
export const RECOVERY_CODES = 10;
export const RECOVERY_CODE_BYTES = 16;

// Tenants.
export const TENANTS_MAX = 10_000;
/**
 * Attempts to register a tenant: each loses to another tenant of the same name that no longer exists when it is read.
 */
export const TENANT_REGISTER_ATTEMPTS_MAX = 8;
/** How long the data of a deleted tenant is kept, to be restored. */
export const TENANT_GRACE_MS = 7 * 24 * 3_600_000;
/** How long a deletion waits for other controllers to say that nothing of the tenant goes on there. */
export const TENANT_LEAVE_WAIT_MS = 10_000;
/** How long one part of a controller may take to end what goes on for a deleted tenant; its stores are closed anyway. */
export const TENANT_LEAVE_STEP_MS = 3_000;
/** A controller that was silent for so long counts as gone: it serves nobody without the store. */
export const TENANT_FOLLOWER_LEASE_MS = 10_000;
/** How often a controller that lost its place among those that follow the tenants takes it again. */
export const TENANT_FOLLOWER_AGAIN_MS = 1_000;
/** Of each text of a tenant's record. */
export const TENANT_TEXT_MAX_CHARACTERS = 1_024;
/** Of `icon` and of `logo`. */
export const TENANT_IMAGE_MAX_BYTES = 256 * 1_024;
/** Of a tenant's `config` as JSON. */
export const TENANT_CONFIG_MAX_BYTES = 16 * 1_024;
/** Of a call that makes or changes a tenant: its images are in it. */
export const TENANT_BODY_MAX_BYTES = 1_024 * 1_024;
/**
 * Growth of a tenant with a quota that a controller knows of alone: more is told to the others before the next write. So
 * many times the number of controllers, and no more, a tenant may have beyond its quota.
 */
export const TENANT_USE_UNTOLD_MAX_OBJECTS = 1_000;
export const TENANT_USE_UNTOLD_MAX_BYTES = 4 * MIB;
/** How often what a tenant with a quota has is counted anew: what expired or was swept is seen then. */
export const TENANT_USE_MEASURE_INTERVAL_MS = 900_000;
/** How fast the objects of a tenant are counted, so that nobody else waits for it. */
export const TENANT_USE_OBJECTS_PER_SECOND = 50_000;
/** A call that is refused for want of room asks what others made of it meanwhile; not more often than this. */
export const TENANT_USE_REREAD_MS = 1_000;
/** Attempts to tell growth: each loses to another controller that tells its own. */
export const TENANT_USE_TELL_ATTEMPTS_MAX = 16;
/** Ids of a batch or an import that are looked up when little room is left; more count as new objects. */
export const ROOM_LOOKUP_IDS_MAX = 10_000;
/** Making a tenant makes tables, which takes a cluster seconds. */
export const TENANT_MAKE_DEADLINE_MS = 120_000;

// Audit.
export const AUDIT_BATCH_MAX_ENTRIES = 500;
export const AUDIT_WAITING_MAX_ENTRIES = 10_000;
/** Entries of one host call of a script that may be unwritten while the call goes on. */
export const AUDIT_RUN_ENTRIES_WAITING_MAX = 100;
/** Names that one entry tells of what was changed. */
export const AUDIT_NAMES_MAX = 20;
export const AUDIT_OBJECT_MAX_CHARACTERS = 1_024;
/** The user, the action and the object of an entry are each cut off at this length. */
export const AUDIT_TEXT_MAX_CHARACTERS = 16 * KIB;
export const AUDIT_KEEP_SECONDS = 400 * 24 * 3_600;
export const AUDIT_PROBE_MS = 2_000;
/** So long a call waits for another attempt when the last entries were not written. */
export const AUDIT_PATIENCE_MS = 1_000;
/** Newest entries of each tenant that a start checks. */
export const AUDIT_VERIFIED_AT_START_ENTRIES = 1_000;
/** Of a verification that tells nothing on its way; one that streams has no bound. */
export const AUDIT_VERIFY_MAX_ENTRIES = 2_000_000;
/** Entries between two lines that tell how far a verification is. */
export const AUDIT_PROGRESS_ENTRIES = 10_000;
/** How often the newest digests go to the file outside the store: so much of a trail can be cut off unnoticed. */
export const AUDIT_ANCHOR_INTERVAL_MS = 60_000;
export const AUDIT_ANCHOR_READ_BYTES = 64 * 1_024;
/** Runs whose digests one call may bring along. */
export const AUDIT_ANCHORS_GIVEN_MAX = 10_000;
/** How often a controller seals the heads of its runs: so much of a run has no head when a controller is killed. */
export const AUDIT_HEAD_INTERVAL_MS = 60_000;
/**
 * Entries of one run without a head may span this much, silences longer than a head's interval left out. More means
 * that heads were put back.
 */
export const AUDIT_HEAD_LATE_MS = 300_000;
/** A head says for every such span of its run which entry was the first: so exactly is told which may have expired. */
export const AUDIT_MARK_INTERVAL_MS = 24 * 3_600_000;
/** Entries may be gone so long before they expire: clocks differ, and reading a trail takes time. */
export const AUDIT_EXPIRY_SLACK_MS = 3_600_000;
/** Clocks of controllers differ by less, where it is asked what was made first. */
export const AUDIT_CLOCK_SLACK_MS = 300_000;
/** Heads in the entry that is written every interval; the older half of more of them goes to a page. */
export const AUDIT_HEADS_TOGETHER_MAX = 64;
/** Heads of one page: less than `KV_VALUE_MAX_BYTES`. */
export const AUDIT_HEADS_PAGE_MAX_BYTES = 256 * KIB;
/** Each attempt to write heads that fails loses to another controller. */
export const AUDIT_HEAD_ATTEMPTS_MAX = 16;
/** Tenants whose heads are written at the same time. */
export const AUDIT_HEAD_WRITES_MAX = 8;
/** Faults of heads that are remembered; the oldest are kept. */
export const AUDIT_HEAD_FAULTS_MAX = 20;

// Secrets.
/** An external command that gives the keys: a start waits so long for it. */
export const SECRET_KEY_COMMAND_DEADLINE_MS = 15_000;
export const SECRET_KEY_TEXT_MAX_BYTES = 64 * 1_024;

// Licences.
/** Of a document. */
export const LICENCE_MAX_BYTES = 16 * 1_024;
/** Attempts to put a licence in the place of another one: each loses to an import at the same moment. */
export const LICENCE_IMPORT_ATTEMPTS_MAX = 8;
/** Days before its end from which a licence is warned of. */
export const LICENCE_WARNED_DAYS = 30;
/** Share of a limit from which it is warned of. */
export const LICENCE_WARNED_SHARE = 0.9;

/** A line of output of one of several hosts as the command line shows it; a longer one is shown as several. */
export const CLI_LINE_MAX_BYTES = 64 * KIB;
