/** Every bound of the program, by name and with its unit last. Grouped by the part that keeps it. */

const KIB = 1024;
const MIB = 1024 * KIB;

// Key-value store. Both engines keep the same limits; they are etcd's, made round.
export const KV_KEY_MAX_BYTES = KIB;
export const KV_VALUE_MAX_BYTES = MIB;
export const KV_TXN_MAX_OPERATIONS = 128;
export const KV_PAGE_MAX_ENTRIES = 1_000;
export const KV_LEASE_MIN_MS = 1_000;
export const KV_LEASE_MAX_MS = 24 * 3_600_000;

// Object store.
export const OBJECT_ID_MAX_BYTES = KIB;
export const OBJECT_MAX_BYTES = 4 * MIB;
export const CELL_MAX_BYTES = MIB;
/** Terms beyond this are cut, which is why a condition on a term is always rechecked on the value. */
export const TERM_MAX_BYTES = KIB;
export const TERMS_PER_OBJECT_MAX = 2_000;
export const FIND_TERMS_MAX = 255;
export const OBJECT_PAGE_MAX = 1_000;
export const CHANGE_BATCH_MAX = 1_000;
/** Numeric index columns every stored object has; slot 0 is the object's version time. */
export const NUMBER_SLOTS = 3;

// Blob store.
export const BLOB_CHUNK_MAX_BYTES = MIB;
export const BLOB_MAX_BYTES = 2_048 * MIB;

// Waiting.
export const STORE_CALL_DEADLINE_MS = 12_000;
export const SHUTDOWN_DEADLINE_MS = 10_000;
/** How long a start goes on while its stores are away or do not say how a write ended, and its pause between two attempts. */
export const START_PATIENCE_MS = 60_000;
export const START_AGAIN_MS = 500;

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

// Regular expressions of users.
export const PATTERN_MAX_CHARACTERS = 8_000;
/** Instructions of the compiled program: counted repeats inside counted repeats multiply them. */
export const PATTERN_MAX_PROGRAM = 20_000;

// Rules and what agents send.
export const RULE_TEXT_MAX_BYTES = 256 * KIB;
export const RULE_CACHE_MAX_ENTRIES = 1_000;
export const GROK_DEPTH_MAX = 16;
export const GROK_PATTERNS_PER_RULE_MAX = 64;
/** A raw record longer than this is parsed as far as it goes and marked. */
export const RECORD_MAX_BYTES = 256 * KIB;
export const INGEST_BATCH_MAX_ENTRIES = 1_000;
export const INGEST_ERRORS_KEPT_PER_ENTRY = 20;
/** Of one batch of a stream: pieces of `CHANGE_BATCH_MAX` rows that are being stored while the next is parsed. */
export const INGEST_CHUNKS_IN_FLIGHT_MAX = 4;
export const INGEST_STREAMS_KNOWN_MAX = 20_000;
/** Different rules among the entries of one batch: the mark names them all. */
export const INGEST_RULES_PER_BATCH_MAX = 256;
/** Of the reason why a rule cannot be used. */
export const INGEST_FAULT_MAX_CHARACTERS = 300;
/** How often a stream that others claim at the same time is claimed again. */
export const INGEST_CLAIM_ATTEMPTS_MAX = 16;
/** Microseconds between the write times of two entries: so many rows of one entry have times of their own. */
export const INGEST_WRITE_SPAN_US = 1_000;
export const PARSE_FILE_MAX_BYTES = 256 * MIB;

// Paths given from outside.
export const PATH_MAX_BYTES = KIB;
export const PATH_SEGMENT_MAX_BYTES = 255;
export const PATH_DEPTH_MAX = 32;

// Depots: what one version may hold, and what unpacking an upload may cost.
export const DEPOT_FILES_MAX = 10_000;
export const DEPOT_MAX_BYTES = 1_024 * MIB;
/** Unpacked bytes per packed byte, beyond a free allowance. */
export const DEPOT_RATIO_MAX = 200;
export const DEPOT_RATIO_FREE_BYTES = 8 * MIB;
/** Of a long name or pax header inside a tar archive. */
export const TAR_HEADER_MAX_BYTES = 64 * KIB;
/** Files up to this size are read whole and stored side by side. */
export const DEPOT_SMALL_FILE_MAX_BYTES = 64 * KIB;
export const DEPOT_PARALLEL_FILES = 16;
export const DEPOT_VERSIONS_MAX = 1_000;
export const DEPOT_TEXT_MAX_BYTES = 2 * MIB;
export const DEPOT_DIFF_MAX_BYTES = 4 * MIB;
export const DEPOT_DIFF_MAX_EDITS = 1_000;
export const DEPOT_COMMAND_MAX_CHARS = 8_000;
export const DEPOT_REMARK_MAX_CHARS = 8_000;

// Deployment.
export const DEPLOY_DEFAULT_S = 60;
export const DEPLOY_MAX_S = 110;
export const DEPLOY_HOSTS_MAX = 2_000;
export const DEPLOY_DEPOTS_MAX = 100;
export const DEPLOY_TARGETS_MAX = 10_000;
export const DEPLOY_PARALLEL_HOSTS = 32;
/** How long after its time a target that does not answer is given up. */
export const DISPATCH_GRACE_MS = 1_000;
/** A deployment that nobody has ended this long after its deadline is ended by whoever sees it. */
export const DEPLOY_LOST_AFTER_MS = 60_000;
export const DEPLOY_MESSAGE_MAX_CHARACTERS = 1_000;
export const DEPLOYMENT_TTL_DAYS = 90;

// Policies.
export const POLICY_HOSTS_MAX = 3_000;
export const POLICIES_PER_HOST_MAX = 500;
export const POLICY_PARALLEL_HOSTS = 16;
/** How often a change is tried again after somebody else was faster. */
export const POLICY_RACES_MAX = 50;
export const POLICY_RUN_TTL_DAYS = 30;

// Jobs.
export const JOB_HOSTS_MAX = 500;
export const JOB_COMMANDS_MAX = 50;
export const JOB_PARAM_MAX_BYTES = 64 * KIB;
export const JOB_DEFAULT_S = 60;
export const JOB_MAX_S = 86_400;
export const JOB_PARALLEL_HOSTS = 32;
export const JOB_RUNS_IN_FLIGHT_MAX = 256;
/** Output kept of one run; what comes after is counted, not kept. */
export const JOB_OUTPUT_MAX_BYTES = 16 * MIB;
/** Output of one run that is answered at once. */
export const JOB_ANSWER_MAX_BYTES = MIB;
/** First part of standard output and error kept in the run's row. */
export const JOB_ROW_OUTPUT_MAX_BYTES = 64 * KIB;
/** How often, and after which first pause, the end of a run is tried to be recorded while the store is away. */
export const JOB_FINISH_ATTEMPTS = 6;
export const JOB_FINISH_PAUSE_MS = 500;
export const JOB_RUN_TTL_DAYS = 30;
/** A run that nobody has ended this long after its deadline is ended by whoever sees it. */
export const JOB_LOST_AFTER_MS = 60_000;
/** A controller whose run was taken over looks this often how it ended. */
export const JOB_FOLLOW_POLL_MS = 500;
/** A run that was taken over waits so long for its host to come to another controller, and looks this often. */
export const JOB_HOST_RETURN_MS = 40_000;
export const JOB_HOST_RETURN_PAUSE_MS = 250;
export const JOB_MESSAGE_MAX_CHARACTERS = 8_000;

// Agent: what it keeps on the host's disk.
export const OUTBOX_MAX_BYTES = 256 * MIB;
/** The part of the outbox that only results and marks may use. */
export const OUTBOX_RESERVE_BYTES = 16 * MIB;
export const OUTBOX_SEGMENT_BYTES = 8 * MIB;
/** Kept taken, so that a full disk has room for one more file: the one that lets the old ones go. */
export const OUTBOX_BALLAST_BYTES = 256 * KIB;
/** One atomic append. */
export const OUTBOX_FRAME_MAX_BYTES = 4 * MIB;
export const OUTBOX_RETRY_MS = 1_000;
/** Between two copies of its marks beside it. */
export const OUTBOX_COPY_MS = 5_000;
/** Of the files of a depot: together they cost the disk little more than one. */
export const FILE_SYNCS_AT_ONCE = 16;
export const JOURNAL_COMMANDS_MAX = 4_096;
/** A finished command is remembered this long after its deadline: nobody repeats it later. */
export const JOURNAL_KEEP_MS = 24 * 3_600_000;

// Agent: the link.
export const SESSION_WELCOME_MS = 10_000;
export const SESSION_BACKOFF_MIN_MS = 200;
export const SESSION_BACKOFF_MAX_MS = 30_000;
/** With the next one: a peer that is paused or unreachable is noticed within six seconds. */
export const SESSION_HEARTBEAT_MS = 1_500;
/** Heartbeats of the controller that may fail to come before the session is given up. */
export const SESSION_HEARTBEATS_MISSED_MAX = 3;
/** An agent that is silent for so long is not there any more. */
export const SESSION_AGENT_SILENCE_MAX_MS = 15_000;
/** Figures of the host go with a heartbeat this often. */
export const SESSION_VALUES_MS = 10_000;
/** A session that lasted less does not count as having worked. */
export const SESSION_STEADY_MS = 5_000;
export const SESSION_WINDOW_ENTRIES = 256;
export const SESSION_WINDOW_MAX_BYTES = 16 * MIB;
export const SESSION_BATCH_MAX_BYTES = MIB;
export const SESSION_MESSAGE_MAX_BYTES = 16 * MIB;
export const SESSION_KEEPALIVE_MS = 20_000;
export const ENROL_CALL_MS = 15_000;
export const ENROL_ANSWER_MAX_BYTES = MIB;
/** A certificate is renewed when this part of its life has passed. */
export const CERTIFICATE_RENEW_AT = 2 / 3;
export const CERTIFICATE_RENEW_RETRY_MS = 60_000;
/** Longest single timer; longer waits look at the clock again in between. */
export const TIMER_MAX_MS = 60_000;

// Agent: processes and commands.
export const EXEC_KILL_GRACE_MS = 5_000;
/** How long a pipe may stay silent after its process ended, when a grandchild holds it open. */
export const EXEC_PIPE_GRACE_MS = 500;
export const EXEC_ERROR_TAIL_BYTES = 4 * KIB;
export const COMMANDS_RUNNING_MAX = 32;
export const COMMAND_OUTPUT_ENTRY_BYTES = 64 * KIB;
/** Output of a command that is not streamed, sent with its result. */
export const COMMAND_OUTPUT_KEPT_BYTES = MIB;
export const FETCH_CALL_MS = 600_000;

// Agent: policies.
export const POLICY_RUN_MAX_MS = 6 * 3_600_000;
export const POLICY_RESTART_MIN_MS = 1_000;
export const POLICY_RESTART_MAX_MS = 60_000;
export const RUN_BUFFER_MAX_BYTES = MIB;
export const RECORDS_PER_ENTRY_MAX = 1_000;
export const RECORDS_ENTRY_MAX_BYTES = 256 * KIB;
/** A policy's time this far in the future can only come from a clock that was wrong. */
export const CLOCK_JUMP_MAX_MS = 3_600_000;
export const LOG_READ_BYTES = 512 * KIB;
/** Pieces get smaller, down to this, while the outbox has little room. */
export const LOG_READ_MIN_BYTES = 16 * KIB;
export const LOG_POLL_MS = 10_000;
export const LOG_POLL_UNWATCHED_MS = 1_000;
/** Time in which changes of followed files gather before they are read. */
export const LOG_GATHER_MS = 50;
/** A record without its end is sent when its file is finished, or its next has not begun, for this long. */
export const LOG_FINAL_MS = 5_000;
/** First bytes of a followed file, and last before the place up to which it was read: by these it is known again. */
export const LOG_HEAD_BYTES = 256;
export const LOG_TAIL_BYTES = 256;
/** A copy that ends before the place read is known by its beginning only if that is not too short. */
export const LOG_COPY_MIN_BYTES = 64;
/** While a followed file is copied it is looked at so often, and for so long, because it may be cut off at any moment. */
export const LOG_COPY_LOOK_MS = 2;
export const LOG_COPY_WATCH_MS = 10_000;
/** As far two files are compared that may be copies of each other. */
export const LOG_COMPARE_BYTES = 64 * KIB;
/** Looks into its folder that must fail to find a file before it counts as deleted. */
export const LOG_MISSES_MAX = 5;
/** Times of files are this coarse. */
export const LOG_TIME_GRAIN_MS = 10;
export const LOG_FILES_MAX = 2_000;
export const LOG_OPEN_FILES_MAX = 256;
export const LOG_FOLDERS_MAX = 1_000;
export const LOG_WALK_ENTRIES_MAX = 50_000;
export const LOG_PARALLEL = 8;

// Query language and queries.
export const MQL_TEXT_MAX_CHARACTERS = 4 * MIB;
export const MQL_TOKENS_MAX = 1_000_000;
/** Parentheses, lists, maps, batches and NOTs inside each other. */
export const MQL_NESTING_MAX = 200;
/** A plain select without LIMIT answers this many rows; `LIMIT -1` is without limit. */
export const QUERY_DEFAULT_LIMIT_ROWS = 100;
/** Rows a sort holds in memory when no small LIMIT bounds it. */
export const QUERY_SORT_MAX_ROWS = 100_000;
/** Disk that one sort takes for the rows that memory does not hold. */
export const QUERY_SORT_SPILL_MAX_BYTES = 1024 * MIB;
/** ORDER BY with LIMIT (and OFFSET) up to this keeps only the best rows. */
export const QUERY_TOP_MAX_ROWS = 2_000;
export const QUERY_GROUPS_MAX = 100_000;
/** Objects of joined classes that one JOIN holds in memory; the first class streams. */
export const QUERY_JOIN_MAX_ROWS = 100_000;
export const QUERY_DISTINCT_MAX_ROWS = 100_000;
/** Of one search condition. */
export const SEARCH_TEXT_MAX_CHARACTERS = 64 * KIB;
/** Words and field conditions of one search. */
export const SEARCH_PARTS_MAX = 1_000;
/** Objects that one `call` of a search is about. */
export const SEARCH_CALL_MAX_ROWS = 10_000;
/** Objects above each other in a tree that a search answers. */
export const SEARCH_TREE_MAX_DEPTH = 100;
/** Rows that a caller inside the controller may collect at once. */
export const QUERY_COLLECT_MAX_ROWS = 100_000;
/** Objects one UPDATE may change. */
export const QUERY_UPDATE_MAX_ROWS = 100_000;
export const QUERY_WRITES_IN_FLIGHT_MAX = 64;
export const QUERY_VALUE_ROWS_MAX = 10_000;
/** Text, values and found objects of one batch, as they lie in its journal; less than `KV_VALUE_MAX_BYTES`, as its format takes a byte. */
export const QUERY_BATCH_JOURNAL_MAX_BYTES = MIB - 1;
/** A batch that was interrupted and that nobody went on with for so long is given up: less than `OBJECT_TOMBSTONE_KEEP_MS`. */
export const QUERY_BATCH_KEEP_MS = 5 * 24 * 3_600_000;
/** Characters of all texts whose trees are kept for the next time; a tree takes some 35 bytes for each. */
export const QUERY_PARSED_MAX_CHARACTERS = 256 * 1024;
/** Longer texts are parsed anew each time. */
export const QUERY_PARSED_TEXT_MAX_CHARACTERS = 4_096;
/** Class trees kept, as the principals of equal rights see them. */
export const QUERY_TREES_KEPT_MAX = 256;
/** A query works no longer than this before it lets others have the thread. */
export const QUERY_SLICE_MAX_MS = 1;
/** Chains that one MATCH unites. */
export const GRAPH_CHAINS_MAX = 64;
/** Edges written in one chain. */
export const GRAPH_STEPS_MAX = 32;
/** Edges that `[*]` and `[*n]` pass. */
export const GRAPH_DEPTH_MAX = 100;
/** Objects that one MATCH meets. */
export const GRAPH_NODES_MAX = 20_000;
/** Edges that one MATCH meets. */
export const GRAPH_EDGES_MAX = 100_000;
export const GRAPH_PATHS_MAX = 10_000;
/** Steps of the search for paths, those that lead nowhere too. */
export const GRAPH_PATH_SEARCH_MAX_STEPS = 500_000;
/** Class records that a list of classes sends at a time. */
export const SCHEMA_PAGE_RECORDS = 200;
/** Records of a schema table, which is answered as one text. */
export const SCHEMA_TABLE_MAX_RECORDS = 100_000;

// Objects: classes, columns, indexes.
export const CLASSES_PER_TENANT_MAX = 5_000;
/** With the inherited ones. */
export const COLUMNS_PER_CLASS_MAX = 500;
export const CLASS_PATH_MAX_BYTES = 512;
export const CLASS_DEPTH_MAX = 16;
export const COLUMN_NAME_MAX_CHARACTERS = 128;
export const EDGE_TYPES_MAX = 1_000;
export const EDGE_TYPE_NAME_MAX_CHARACTERS = 128;
/** Edges of one type from one object that one statement may name or clear. */
export const EDGES_PER_WRITE_MAX = 10_000;
/** Edges to objects that one statement removes which are kept in memory; of more they are read once more. */
export const ENDED_EDGES_KEPT_MAX = 10_000;
/** Objects whose edges are read at once for one call, each a page at a time. */
export const EDGE_READS_IN_FLIGHT_MAX = 32;
/** Edges of one object that a read of an earlier time keeps in memory. */
export const EDGES_AS_OF_MAX = 100_000;
/** Objects whose edges of an earlier time are read at once for one call. */
export const EDGES_AS_OF_IN_FLIGHT_MAX = 8;
/** Objects whose versions are read at once for one call. */
export const HISTORY_READS_IN_FLIGHT_MAX = 32;
/** Of `TERMS_PER_OBJECT_MAX`: words of the full text; an object with more is marked and always rechecked. */
export const WORDS_PER_OBJECT_MAX = 1_000;
/** Of `TERMS_PER_OBJECT_MAX`: values of indexed columns, with each element of sets, lists and maps. */
export const INDEXED_VALUES_PER_OBJECT_MAX = 900;
/** `IN` with more values is answered by filtering. */
export const INDEX_UNION_MAX = 64;
/** Words that one full-text condition may look for. */
export const TEXT_WORDS_MAX = 200;
/** Words of one search that the index is asked for; the caller checks the others. */
export const SEARCH_WORDS_MAX = 16;
/** Timelines that are merged at once; a class tree with more record classes reads smaller pages. */
export const TIMELINE_PAGE_ROWS = 500;
/** A catalog that cannot keep its lease for this long stops writing; a change of definitions waits so long for a controller that is gone. */
export const CATALOG_LEASE_MS = 8_000;
/** Controllers that serve one tenant. Times of writes have this many residues, one for each of them. */
export const CATALOG_FOLLOWERS_MAX = 64;
/** Longer than the lease: then whoever has not acknowledged is gone, or alive and stuck. */
export const CATALOG_ACKNOWLEDGE_DEADLINE_MS = 10_000;
/** How often the definitions may be lost during one write before it is left unconfirmed. */
export const CATALOG_CONFIRM_ATTEMPTS_MAX = 8;
/** How often words that another controller may have dropped are added again for one write. */
export const SHARED_TERMS_ATTEMPTS_MAX = 16;
/** Objects that are brought into a new index between two notes of how far that has got. */
export const INDEX_FILL_PAGE_ROWS = 200;
/** Objects that are counted at once before that. */
export const INDEX_COUNT_PAGE_ROWS = 1_000;
/** How long a call waits for definitions that have to be read anew. */
export const CATALOG_RESUME_DEADLINE_MS = 5_000;
export const CATALOG_RETRY_MS = 250;
export const CATALOG_CHANGE_ATTEMPTS_MAX = 32;
export const STORE_ATTEMPTS_MAX = 6;
export const STORE_RETRY_MIN_MS = 10;
/** Durable subscriptions of changes of objects in one tenant, and classes that one may name. */
export const CHANGE_SUBSCRIPTIONS_MAX = 100;
export const CHANGE_SUBSCRIPTION_CLASSES_MAX = 1_000;
export const CHANGE_SUBSCRIPTION_NAME_MAX_CHARACTERS = 128;
/** When a controller does not keep its lease for this long, others tell what it left. */
export const CHANGE_LEASE_MS = 8_000;
/** Events that are stored and not taken by their subscribers; with more nothing is written that would have to be told. */
export const CHANGE_EVENTS_WAITING_MAX = 10_000;
/** Events that are told at once, or those of one write. */
export const CHANGE_DELIVERY_EVENTS = 1_000;
export const CHANGE_DELIVERY_DEADLINE_MS = 8_000;
export const CHANGE_DELIVERY_AGAIN_MIN_MS = 100;
export const CHANGE_DELIVERY_AGAIN_MAX_MS = 10_000;
export const CHANGE_PAGE_INTENTS = 100;
/** Boxes of controllers that are gone are looked for this often, in case nobody could tell. */
export const CHANGE_TAKEOVER_INTERVAL_MS = 10_000;
/** What nobody took for so long is forgotten. */
export const CHANGE_INTENT_KEEP_MS = 30 * 24 * 3_600_000;
/** Sets, lists and maps of one attribute. */
export const COLLECTION_ELEMENTS_MAX = 10_000;
/** Longer elements and map keys are named by their hash in the store. */
export const ELEMENT_NAME_MAX_BYTES = 200;

// Hosts, enrolment and the controller's end of the agent link.
export const HOST_CONFIG_MAX_ENTRIES = 256;
export const HOST_CONFIG_VALUE_MAX_BYTES = 64 * KIB;
/** Facts of a connected host are written at most this often. */
export const HOST_FACTS_MIN_INTERVAL_MS = 60_000;
export const HOST_FACTS_MAX_ENTRIES = 64;
export const HOST_FACT_MAX_BYTES = KIB;
export const JOIN_TOKEN_DEFAULT_MINUTES = 60;
export const JOIN_TOKEN_MAX_MINUTES = 7 * 24 * 60;
/** A used token answers the same request again for so long, so that a lost answer is no dead end. */
export const JOIN_TOKEN_REPEAT_MS = 600_000;
export const JOIN_TOKENS_SWEPT_PER_TOKEN = 20;
export const CSR_MAX_BYTES = 8 * KIB;
export const CERTIFICATE_COMMON_NAME_MAX = 64;
/** Certificates begin to be valid this much earlier, for clocks that differ. */
export const CERTIFICATE_SKEW_MS = 300_000;
export const AGENT_CERTIFICATE_LIFETIME_MS = 24 * 3_600_000;
export const SERVER_CERTIFICATE_LIFETIME_MS = 30 * 24 * 3_600_000;
export const AUTHORITY_LIFETIME_MS = 20 * 365 * 24 * 3_600_000;
export const AGENT_SESSIONS_MAX = 5_000;
export const AGENT_HELLOS_IN_FLIGHT_MAX = 128;
export const AGENT_HELLOS_PER_MINUTE = 60;
/** For the first frame after the stream is open. */
export const AGENT_HELLO_DEADLINE_MS = 10_000;
export const AGENT_SEND_QUEUE_MAX_FRAMES = 1_024;
export const AGENT_STREAMS_PER_CONNECTION_MAX = 32;
export const AGENT_RENEW_MIN_INTERVAL_MS = 1_000;
export const AGENT_SESSION_LEASE_MS = 15_000;
/** A connected agent's desired state is read again this often, in case nobody could tell that it changed. */
export const DESIRED_RECHECK_MS = 60_000;
/** Entries of all agents of a controller that are not stored yet; streams are not read meanwhile. */
export const ENTRIES_WAITING_MAX_BYTES = 64 * MIB;
export const AGENT_REGISTER_ATTEMPTS_MAX = 16;
export const AGENT_COMMANDS_WAITING_MAX = 10_000;
/** After a cancel the agent has so long to tell how the command ended. */
export const COMMAND_CANCEL_GRACE_MS = 5_000;
export const COMMAND_RECORD_TTL_DAYS = 7;
export const COMMAND_LINE_MAX_BYTES = 256 * KIB;

// SSH.
export const SSH_CONNECTIONS_MAX = 32;
export const SSH_CONNECT_MS = 15_000;
/** Linux takes 128 KiB in one argument. */
export const SSH_COMMAND_MAX_BYTES = 120 * KIB;
export const SSH_OUTPUT_MAX_BYTES = 64 * MIB;
export const SSH_UPLOADS_AT_ONCE = 16;
export const SSH_KILL_GRACE_MS = 1_000;
export const SSH_JOURNAL_KEEP_MS = 24 * 3_600_000;
export const SSH_JOURNAL_SWEPT_PER_COMMAND = 20;

// Cluster engine.
/** One attempt within a call: a node that hangs must not eat the whole deadline. */
export const CLUSTER_ATTEMPT_DEADLINE_MS = 4_000;
/** So many requests unanswered in time on one connection, and its node counts as away until it answers a new one. */
export const CLUSTER_SILENT_REQUESTS_MAX = 8;
/** A member of etcd that is silent for so long at a look every so often is left for another. */
export const ETCD_PROBE_INTERVAL_MS = 1_500;
export const ETCD_PROBE_DEADLINE_MS = 2_000;
export const CLUSTER_HANDSHAKE_DEADLINE_MS = 3_000;
export const CLUSTER_REQUESTS_IN_FLIGHT_MAX = 128;
/** Definitions of tables take 60 ms each on one node, seconds on a ring under load. */
export const CLUSTER_SCHEMA_DEADLINE_MS = 90_000;
export const ETCD_MESSAGE_MAX_BYTES = 64 * MIB;
export const RECORD_DAYS_CACHED_MAX = 20_000;
/** Records of one partition that are written with one request. */
export const RECORD_BATCH_MAX_ROWS = 64;
export const RECORD_BATCH_MAX_BYTES = 256 * KIB;
/** Partitions of records one page of a timeline looks into before it is handed out short. */
export const TIMELINE_PARTITIONS_PER_PAGE = 64;

// Export and import.
/** Ids of one class that an export sorts at once. */
export const EXPORT_IDS_HELD_MAX = 100_000;
export const EXPORT_PAGE_ROWS = 500;
export const EXPORT_PIECE_CHARACTERS = 64 * KIB;
/** What an import writes between two notes of how far it is. */
export const IMPORT_CHUNK_MAX_ROWS = 1_000;
export const IMPORT_CHUNK_MAX_CHARACTERS = 2 * MIB;
/** Faults of one upload that are told at once; the check ends there. */
export const IMPORT_FAULTS_MAX = 20;
/** Ids in an import that several classes can have, both of its objects and of what they are related to. */
export const IMPORT_OPEN_TARGETS_MAX = 200_000;
/** Imports of one controller that are checked or written at the same time. */
export const IMPORTS_UNDER_WAY_MAX = 4;
/** A call waits for its import so long, its check included, less than `HTTP_CALL_DEADLINE_MS`. */
export const IMPORT_ANSWER_MS = 100_000;
/** How far an import is goes into its object and to those who listen at most this often. */
export const IMPORT_PROGRESS_MS = 1_000;
/** A chunk that the stores did not take is tried again; then the import rests until maintenance goes on with it. */
export const IMPORT_CHUNK_ATTEMPTS = 5;
export const IMPORT_CHUNK_RETRY_MS = 500;
export const TRANSFER_RECORD_TTL_DAYS = 90;

// Spreadsheets.
/** Rows of a sheet, as spreadsheet programs have them. */
export const SHEET_ROWS_MAX = 1_048_576;
export const SHEET_COLUMNS_MAX = 16_384;
/** UTF-16 units of the name of a sheet. */
export const SHEET_NAME_MAX_CHARACTERS = 31;
export const SHEET_ENTRIES_MAX = 12_000;
/** Of all parts of a workbook together, unpacked, and unpacked bytes per packed byte beyond a free allowance. */
export const SHEET_UNPACKED_MAX_BYTES = 1_024 * MIB;
export const SHEET_RATIO_MAX = 200;
export const SHEET_RATIO_FREE_BYTES = 8 * MIB;
/** Texts that cells of a workbook share; they are held in memory. */
export const SHEET_SHARED_MAX_CHARACTERS = 32 * MIB;
/** A tag or a text of a part. */
export const SHEET_MARKUP_MAX_CHARACTERS = 8 * MIB;

// Files.
/** A file larger than this is downloaded, not answered as text. */
export const FILE_TEXT_MAX_BYTES = 8 * MIB;

// Embedded store.
/** Changes kept for watchers; whoever is further behind lists again. */
export const KV_LOG_MAX_ENTRIES = 10_000;
export const KV_LOG_MAX_BYTES = 64 * MIB;
/** A page or a batch of a watch ends early when it has this much; it always has one entry. */
export const KV_PAGE_MAX_BYTES = 8 * MIB;
export const KV_WATCH_BATCH_MAX_ENTRIES = 500;
/** How long a removal is remembered, so that an older write that arrives late does not bring back what was removed. */
export const OBJECT_TOMBSTONE_KEEP_MS = 10 * 24 * 3_600_000;
/** Index entries that one page of find or timeline looks at, as nobody else has the thread meanwhile: a page may be empty and have a successor. */
export const OBJECT_PAGE_EXAMINED_MAX = 64;
export const OBJECT_PAGE_MAX_BYTES = MIB;
/** Lists of cell keys that are kept for the entities read next, and how long they may be. */
export const KEY_LISTS_MAX = 1_024;
export const KEY_LIST_KEPT_MAX_BYTES = KIB;
/** Changes that go into one write transaction before others get their turn. */
export const CHANGE_SLICE_MAX = 64;
export const EXPIRY_SWEEP_EVERY_MS = 5_000;
export const EXPIRY_SWEEP_MAX_ENTRIES = 200;
/** Of the text that names who needs a content. */
export const BLOB_OWNER_MAX_BYTES = KIB;
export const BLOB_STREAM_READ_MAX_BYTES = MIB;
export const BLOB_STREAM_APPEND_MAX_BYTES = 4 * MIB;

// The controller's own log file.
export const LOG_FILE_MAX_BYTES = 4 * MIB;
export const LOG_FILE_GENERATIONS = 4;

// The agent that runs beside a controller.
export const LOCAL_AGENT_RESTART_MIN_MS = 500;
export const LOCAL_AGENT_RESTART_MAX_MS = 30_000;
export const LOCAL_AGENT_STOP_DEADLINE_MS = 5_000;

// The demonstration.
export const DEMO_DEADLINE_MS = 60_000;
export const DEMO_POLL_MS = 200;

// Recurring work of a controller.
export const MAINTENANCE_INTERVAL_MS = 60_000;
export const BLOB_SWEEP_INTERVAL_MS = 3_600_000;
/** Content nobody marks is kept this long: an upload that is under way marks it only at its end. */
export const BLOB_SWEEP_GRACE_MS = 24 * 3_600_000;

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
/** What waits to be read by another controller; beyond it events are left out, and it is told so. */
export const PEER_QUEUE_MAX_FRAMES = 4_096;
export const PEER_QUEUE_MAX_BYTES = 16 * MIB;
export const PEER_SUBJECTS_MAX = 10_000;
export const PEER_HOSTS_PER_REFRESH_MAX = 1_000;
/** A command that no session takes is tried again this often. */
export const COMMAND_PLACE_AGAIN_MS = 250;
/** Somebody was said to hold the host's session; when nobody took the command within this it is unreachable. */
export const COMMAND_REACH_MS = 8_000;
/** What is stored of a command could not be read: again after this. */
export const COMMAND_READ_AGAIN_MS = 500;
/** A deadline has passed: so long for one more look at what is stored, less than `DISPATCH_GRACE_MS`. */
export const COMMAND_LAST_LOOK_MS = 700;
/** Pieces of stored output read at once. */
export const COMMAND_PIECES_PER_READ = 64;
