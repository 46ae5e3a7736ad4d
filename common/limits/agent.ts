/** Limits of agents: what they keep, send and run. */

import { KIB, MIB } from "./units.ts";

// Rules and what agents send.
export const RULE_TEXT_MAX_BYTES = 256 * KIB;
/** Piece size in characters when parsing records, and the time after which other work gets a turn. */
export const PARSE_PIECE_MAX_CHARACTERS = 8_192;
export const PARSE_SLICE_MAX_MS = 10;
/**
 * Squared characters of a record, times the number of patterns of its grok rule. From this value on, parsing may take
 * some 10 ms, so a worker thread does it.
 */
export const PARSE_THREAD_MIN_STEPS = 16_000_000;
export const PARSE_THREAD_TIMEOUT_MS = 30_000;
/** Compiled rules that each thread caches. */
export const PARSE_THREAD_RULES_MAX = 64;
export const RULE_CACHE_MAX_ENTRIES = 1_000;
export const GROK_DEPTH_MAX = 16;
/** Steps to try the patterns of a rule on one record, counted like `PATTERN_STEPS_MAX`: well below a second. */
export const GROK_STEPS_MAX = 80_000_000;
export const GROK_PATTERNS_PER_RULE_MAX = 64;
/** Grok patterns that the users of a tenant define. As JSON they are smaller than `KV_VALUE_MAX_BYTES`. */
export const GROK_OWN_PATTERNS_MAX = 1_000;
export const GROK_OWN_PATTERNS_MAX_BYTES = 256 * KIB;
export const GROK_PATTERN_NAME_MAX_CHARACTERS = 128;
/** The sample of a pattern. */
export const GROK_SAMPLE_MAX_CHARACTERS = 16 * KIB;
/** Attempts of one change of patterns; each attempt starts from what another controller has just written. */
export const GROK_PATTERN_CHANGE_ATTEMPTS_MAX = 16;
/** The extension table of a rule, as LTSV. It is pinned together with the rule, within `KV_VALUE_MAX_BYTES`. */
export const RULE_EXTENSION_MAX_BYTES = 128 * KIB;
export const RULE_EXTENSION_ROWS_MAX = 10_000;
/** Failed lines per call with an entry of their own in the rule's console log. One more entry counts the others. */
export const RULE_FAILURES_LOGGED_MAX = 1_000;
/** Characters of a failed line that its log entry keeps. */
export const RULE_FAILED_LINE_MAX_CHARACTERS = 1_000;
/** A longer raw record is parsed up to this length, and marked. */
export const RECORD_MAX_BYTES = 256 * KIB;
/** Bytes per piece when lines with malformed bytes are searched; other work runs between two pieces. */
export const LINE_MARKS_TURN_BYTES = 256 * KIB;
export const INGEST_BATCH_MAX_ENTRIES = 1_000;
export const INGEST_ERRORS_KEPT_PER_ENTRY = 20;
/** Chunks of `CHANGE_BATCH_MAX` rows of one batch that are being stored while the next chunk is parsed. */
export const INGEST_CHUNKS_IN_FLIGHT_MAX = 4;
/** Hosts whose stream positions a controller knows. */
export const INGEST_HINTS_HOSTS_MAX = 20_000;
/** Known streams per host. An agent begins a new stream with each new outbox. */
export const INGEST_HINTS_STREAMS_MAX = 8;
/** Interval between two writes of hints by one controller, so that even slow lines cause few writes. */
export const INGEST_HINTS_MS = 5_000;
/** Time for which the position of a stream is known after its last entry. */
export const INGEST_HINT_KEPT_MS = 30 * 24 * 3_600_000;
/** Different rules in one batch; all of them are pinned. */
export const INGEST_RULES_PER_BATCH_MAX = 16;
/** Maximum characters of the reason why a rule cannot be used. */
export const INGEST_FAULT_MAX_CHARACTERS = 300;
/** Time for which an agent may pin batches to the rules and the time that a controller told it. */
export const PIN_TOLD_FRESH_MS = 1_000;
/** Maximum difference between the write times of a batch and the time that its agent was told. */
export const PIN_AHEAD_MAX_US = 5_000_000;
/** Time for which the text of a rule is kept after an agent was last told about it. */
export const RULE_TEXT_KEPT_MS = 30 * 24 * 3_600_000;
/** When an agent is told about the text again, its time is extended only if this much of it has passed. */
export const RULE_TEXT_RENEW_MS = 24 * 3_600_000;
/** Names of policies and rules sent to a host: maximum number kept (the latest), and their maximum bytes. */
export const SENT_POLICIES_KEPT_MAX = 1_000;
export const SENT_POLICIES_MAX_BYTES = 900 * KIB;
export const SENT_HOSTS_KNOWN_MAX = 20_000;
export const SENT_RACES_MAX = 16;
/** Lines that one quoted csv value may span, in a file or in one `POST /agent`. */
export const CSV_JOINED_LINES_MAX = 1_000;
/** Characters of lines checked for open quotes per turn of the event loop. */
export const CSV_TURN_CHARACTERS = 256 * KIB;
export const PARSE_FILE_MAX_BYTES = 256 * MIB;
/** Lines per `POST /agent`. Lines sent to a channel have a lower limit, because a receiver takes them all at once. */
export const SENT_LINES_MAX = 10_000;
export const SENT_FRAMES_MAX = 1_000;
export const SENT_FRAMES_MAX_CHARACTERS = MIB / 2;

// Agent: what it keeps on the host's disk.
export const OUTBOX_MAX_BYTES = 256 * MIB;
/** Part of the outbox reserved for results and marks. */
export const OUTBOX_RESERVE_BYTES = 16 * MIB;
export const OUTBOX_SEGMENT_BYTES = 8 * MIB;
/** Reserved disk space: on a full disk it makes room for the one file that allows old files to be deleted. */
export const OUTBOX_BALLAST_BYTES = 256 * KIB;
/** Size of one of two slots for the rules that batches in transit are parsed by. At least one batch always fits. */
export const OUTBOX_PINS_SLOT_BYTES = 128 * KIB;
/** Maximum bytes of one atomic append. */
export const OUTBOX_FRAME_MAX_BYTES = 4 * MIB;
/** Maximum lead of entry times over the clock. Within it, all entry times are different. */
export const OUTBOX_TIME_AHEAD_MAX_MS = 2_000;
export const OUTBOX_RETRY_MS = 1_000;
/** Interval between two copies of its marks, which are stored next to the outbox. */
export const OUTBOX_COPY_MS = 5_000;
/** Concurrent syncs of a depot's files. Together they cost the disk little more than one. */
export const FILE_SYNCS_AT_ONCE = 16;
export const JOURNAL_COMMANDS_MAX = 4_096;
/** Time after its deadline for which a finished command is remembered. No controller repeats it later. */
export const JOURNAL_KEEP_MS = 24 * 3_600_000;

// Agent: the link.
export const SESSION_WELCOME_MS = 10_000;
export const SESSION_BACKOFF_MIN_MS = 200;
/** Maximum delay until an agent tries a returning controller. A thousand agents make 130 attempts per second. */
export const SESSION_BACKOFF_MAX_MS = 10_000;
/** Heartbeat interval. With the next heartbeat, a paused or unreachable peer is noticed within six seconds. */
export const SESSION_HEARTBEAT_MS = 1_500;
/** Missed heartbeats of the controller before the agent gives up the session. */
export const SESSION_HEARTBEATS_MISSED_MAX = 3;
/** Silence after which a controller considers an agent gone. */
export const SESSION_AGENT_SILENCE_MAX_MS = 15_000;
/** Interval at which heartbeats include figures of the host. */
export const SESSION_VALUES_MS = 10_000;
/** A shorter session does not count as a working one. */
export const SESSION_STEADY_MS = 5_000;
export const SESSION_WINDOW_ENTRIES = 256;
export const SESSION_WINDOW_MAX_BYTES = 16 * MIB;
export const SESSION_BATCH_MAX_BYTES = MIB;
/** A batch is at most `SESSION_BATCH_MAX_BYTES` plus one entry; the rest is room for the data around records. */
export const AGENT_FRAME_MAX_BYTES = 8 * MIB;
/** `SESSION_WINDOW_ENTRIES` with `RECORDS_PER_ENTRY_MAX` records each, plus the data around them. */
export const AGENT_FRAME_MAX_FIELDS = 270_000;
export const SESSION_MESSAGE_MAX_BYTES = 16 * MIB;
export const SESSION_KEEPALIVE_MS = 20_000;
export const ENROL_CALL_MS = 15_000;
export const ENROL_ANSWER_MAX_BYTES = MIB;
/** Fraction of its lifetime after which a certificate is renewed. */
export const CERTIFICATE_RENEW_AT = 2 / 3;
export const CERTIFICATE_RENEW_RETRY_MS = 60_000;
/** Longest single timer. Longer waits check the clock in between. */
export const TIMER_MAX_MS = 60_000;

// Tunnels: connections that an agent opens for the controllers to hosts that only its own reaches.
/** Deadline to connect to the target, including the look-up of its name. */
export const TUNNEL_CONNECT_MS = 15_000;
/** Deadline for the whole opening, as the controller waits. The agent answers sooner. */
export const TUNNEL_ANSWER_MS = 20_000;
/** A tunnel without traffic for this long is closed. SSH sends its own keep-alives more often. */
export const TUNNEL_SILENCE_MAX_MS = 120_000;
/** Bytes per frame. gRPC keeps at most 16 frames of a stream that is not read. */
export const TUNNEL_PIECE_MAX_BYTES = 16 * KIB;
/** Bytes per direction that may wait at each end. */
export const TUNNEL_BUFFER_MAX_BYTES = 256 * KIB;
/** One piece and the data around it. */
export const TUNNEL_FRAME_MAX_BYTES = 20 * KIB;
export const TUNNEL_FRAME_MAX_FIELDS = 16;
/** More than `SSH_CONNECTIONS_MAX`, for several controllers; less than `AGENT_STREAMS_PER_CONNECTION_MAX`. */
export const AGENT_TUNNELS_MAX = 64;
export const TUNNEL_MESSAGE_MAX_CHARACTERS = 300;

// Agent: processes and commands.
export const EXEC_KILL_GRACE_MS = 5_000;
/** Maximum silence of a pipe after its process ended, if a grandchild keeps it open. */
export const EXEC_PIPE_GRACE_MS = 500;
export const EXEC_ERROR_TAIL_BYTES = 4 * KIB;
export const COMMANDS_RUNNING_MAX = 32;
export const COMMAND_OUTPUT_ENTRY_BYTES = 64 * KIB;
/** Output of a command that is not streamed; it is sent with the result. */
export const COMMAND_OUTPUT_KEPT_BYTES = MIB;
export const FETCH_CALL_MS = 600_000;

// Agent: policies.
/** Longest time of one run of a policy. */
export const POLICY_RUN_MAX_S = 6 * 3_600;
export const POLICY_RUN_MAX_MS = POLICY_RUN_MAX_S * 1_000;
/** Longest pause after failed runs of a policy, and the number of failures from which it no longer grows. */
export const POLICY_BACKOFF_MAX_S = 7 * 86_400;
export const POLICY_BACKOFF_FAILURES_MAX = 32;
/** Limits that a policy may set for its command. */
export const POLICY_BYTES_MAX = 1_024 * 1_024 * MIB;
export const POLICY_MEMORY_MIN_BYTES = MIB;
export const POLICY_CPU_MAX_S = 86_400;
export const POLICY_NICE_MAX = 19;
/** Time from the signal at the limit of processor time, which a process may ignore, to its end. */
export const POLICY_CPU_GRACE_S = 5;
export const POLICY_ENVIRONMENT_MAX_ENTRIES = 100;
export const POLICY_ENVIRONMENT_VALUE_MAX_CHARACTERS = 8_000;
/** Time for the questions about the user of a policy: its number, its groups, and what it may read. */
export const POLICY_USER_LOOKUP_MS = 10_000;
/** Policy states that an agent reports, and the maximum length of each. */
export const POLICY_STATES_MAX = 128;
export const POLICY_STATE_MAX_CHARACTERS = 250;
/** Least time between two readings of the processor time and memory of daemons and external agents. */
export const USAGE_INTERVAL_MS = 30_000;
/** Longest list of programs of an external agent that the agent reads; a longer one counts as none. */
export const EXTERNAL_AGENT_STATE_MAX_BYTES = 256 * KIB;
export const POLICY_RESTART_MIN_MS = 1_000;
export const POLICY_RESTART_MAX_MS = 60_000;
export const RUN_BUFFER_MAX_BYTES = MIB;
export const RECORDS_PER_ENTRY_MAX = 1_000;
export const RECORDS_ENTRY_MAX_BYTES = 256 * KIB;
/** A policy time further in the future than this can only come from a wrong clock. */
export const CLOCK_JUMP_MAX_MS = 3_600_000;
export const LOG_READ_BYTES = 512 * KIB;
/** Minimum read size; reads get smaller while the outbox has little room. */
export const LOG_READ_MIN_BYTES = 16 * KIB;
export const LOG_POLL_MS = 10_000;
export const LOG_POLL_UNWATCHED_MS = 1_000;
/** Time to collect changes of followed files before they are read. */
export const LOG_GATHER_MS = 50;
/** An incomplete record is sent after this time if its file is finished or the next record has not begun. */
export const LOG_FINAL_MS = 5_000;
/** Silence after which the last line of an open file is sent without its end. */
export const LOG_LAST_LINE_MS = 30_000;
/** Bytes at the beginning of a followed file, and before the read position, that identify the file. */
export const LOG_HEAD_BYTES = 256;
export const LOG_TAIL_BYTES = 256;
/** Bytes of a heading line that is sent with the records of its file; a longer one is not sent. */
export const LOG_HEADING_MAX_BYTES = 8 * KIB;
/**
 * Bytes of the heading lines in the marks of all files of a policy. Heading lines of further files are in memory only.
 */
export const LOG_HEADINGS_KEPT_MAX_BYTES = MIB;
/** Bytes before the read position in which an agent searches for the heading line of a file. */
export const LOG_HEADING_SEARCH_MAX_BYTES = 64 * MIB;
/** Minimum length of a beginning that identifies a copy which ends before the read position. */
export const LOG_COPY_MIN_BYTES = 64;
/** Interval and duration of the checks while a followed file is copied, because it may be truncated at any moment. */
export const LOG_COPY_LOOK_MS = 2;
export const LOG_COPY_WATCH_MS = 10_000;
/** Piece size when two files that may be copies are compared to their ends. */
export const LOG_COMPARE_BYTES = 64 * KIB;
/** Distance between the checkpoints that identify a copy. The first ones are `LOG_HEAD_BYTES` apart. */
export const LOG_CHECK_BYTES = 4 * KIB;
export const LOG_CHECK_FINE_UNTIL_BYTES = 4 * KIB;
/** Bytes of a hole that one look at a file skips; the next look continues after them. */
export const LOG_HOLE_LOOK_BYTES = 64 * MIB;
/** Unpacked bytes of one packed file that is read. */
export const LOG_PACKED_MAX_BYTES = 1_024 * MIB;
/** Unpacked bytes of one packed file in one look; the next look continues after them. */
export const LOG_PACKED_LOOK_BYTES = 8 * MIB;
/** Packed files that are read at the same time. Others wait. */
export const LOG_PACKED_JOBS_MAX = 8;
/** Ended lives that a policy remembers, so that it recognises their packed files and does not read them again. */
export const LOG_ENDED_LIVES_MAX = 100;
/** Packed files without new content that a policy remembers. */
export const LOG_PACKED_KNOWN_MAX = 500;
/** Interval between two looks into an incomplete packed file. */
export const LOG_PACKED_LOOK_MS = 1_000;
/** Time after which the content of an incomplete packed file counts as lost. */
export const LOG_PACKED_WAIT_MS = 30_000;
/**
 * Time that the lines of a new file wait for the rest of the previous file, if that file is not found or is being
 * packed. Longer than `LOG_PACKED_WAIT_MS`.
 */
export const LOG_ORDER_WAIT_MS = 40_000;
/** Number of failed looks for a file in its folder before it counts as deleted. */
export const LOG_MISSES_MAX = 5;
/** Resolution of file times. */
export const LOG_TIME_GRAIN_MS = 10;
export const LOG_FILES_MAX = 2_000;
export const LOG_OPEN_FILES_MAX = 256;
export const LOG_FOLDERS_MAX = 1_000;
export const LOG_WALK_ENTRIES_MAX = 50_000;
/** Different reasons why something is not followed that the agent's log has for a policy. */
export const LOG_COMPLAINTS_MAX = 20;
/** Open files of a host that are searched for the writers of a truncated log. With more, no position is known. */
export const LOG_DESCRIPTORS_MAX = 50_000;
export const LOG_PARALLEL = 8;
