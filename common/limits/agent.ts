/** Limits of agents: what they keep, send and run. */

import { KIB, MIB } from "./units.ts";

// Rules and what agents send.
export const RULE_TEXT_MAX_BYTES = 256 * KIB;
/** Records are parsed in pieces of so many characters, and others get their turn when some have taken so long. */
export const PARSE_PIECE_MAX_CHARACTERS = 8_192;
export const PARSE_SLICE_MAX_MS = 10;
/**
 * Characters of a record, squared, times patterns of its grok rule: from here on, some 10 ms at worst, a worker thread
 * parses it.
 */
export const PARSE_THREAD_MIN_STEPS = 16_000_000;
export const PARSE_THREAD_TIMEOUT_MS = 30_000;
/** Compiled rules that each thread keeps. */
export const PARSE_THREAD_RULES_MAX = 64;
export const RULE_CACHE_MAX_ENTRIES = 1_000;
export const GROK_DEPTH_MAX = 16;
/** What trying the patterns of a rule on one record may cost, as `PATTERN_STEPS_MAX` has it: well below a second. */
export const GROK_STEPS_MAX = 80_000_000;
export const GROK_PATTERNS_PER_RULE_MAX = 64;
/** Users' own patterns of a tenant. All as JSON are less than `KV_VALUE_MAX_BYTES`. */
export const GROK_OWN_PATTERNS_MAX = 1_000;
export const GROK_OWN_PATTERNS_MAX_BYTES = 256 * KIB;
export const GROK_PATTERN_NAME_MAX_CHARACTERS = 128;
/** The sample of a pattern. */
export const GROK_SAMPLE_MAX_CHARACTERS = 16 * KIB;
/** Attempts of one change of patterns, each on what another controller wrote meanwhile. */
export const GROK_PATTERN_CHANGE_ATTEMPTS_MAX = 16;
/** The extension table of a rule, as LTSV. It is pinned with the rule, in less than `KV_VALUE_MAX_BYTES`. */
export const RULE_EXTENSION_MAX_BYTES = 128 * KIB;
export const RULE_EXTENSION_ROWS_MAX = 10_000;
/** Failed lines of one call that have an entry each in the console log of the rule; one more counts the others. */
export const RULE_FAILURES_LOGGED_MAX = 1_000;
/** Characters of a failed line that its entry keeps. */
export const RULE_FAILED_LINE_MAX_CHARACTERS = 1_000;
/** A raw record longer than this is parsed as far as it goes and marked. */
export const RECORD_MAX_BYTES = 256 * KIB;
export const INGEST_BATCH_MAX_ENTRIES = 1_000;
export const INGEST_ERRORS_KEPT_PER_ENTRY = 20;
/** Pieces of `CHANGE_BATCH_MAX` rows of one batch that are being stored while the next is parsed. */
export const INGEST_CHUNKS_IN_FLIGHT_MAX = 4;
/** Hosts of which a controller knows how far their streams are. */
export const INGEST_HINTS_HOSTS_MAX = 20_000;
/** Streams of one host that are known: an agent begins one with each new outbox. */
export const INGEST_HINTS_STREAMS_MAX = 8;
/** Between two writes of hints by one controller: few for many lines, also where lines are slow. */
export const INGEST_HINTS_MS = 5_000;
/** How long it is known how far a stream is, after something came of it. */
export const INGEST_HINT_KEPT_MS = 30 * 24 * 3_600_000;
/** Different rules among the entries of one batch: all are pinned. */
export const INGEST_RULES_PER_BATCH_MAX = 16;
/** Characters of the reason why a rule cannot be used. */
export const INGEST_FAULT_MAX_CHARACTERS = 300;
/** What an agent was told of a rule, and of the time, holds so long for batches that it pins. */
export const PIN_TOLD_FRESH_MS = 1_000;
/** How far the writes of a batch may lie behind the time that its agent was told. */
export const PIN_AHEAD_MAX_US = 5_000_000;
/** How long the text of a rule is kept after an agent was told of it the last time. */
export const RULE_TEXT_KEPT_MS = 30 * 24 * 3_600_000;
/** So much of it may pass before a text that is told again is kept longer. */
export const RULE_TEXT_RENEW_MS = 24 * 3_600_000;
/** Names of policies, and of rules, that a host was sent: so many are kept, the latest, and in so many bytes. */
export const SENT_POLICIES_KEPT_MAX = 1_000;
export const SENT_POLICIES_MAX_BYTES = 900 * KIB;
export const SENT_HOSTS_KNOWN_MAX = 20_000;
export const SENT_RACES_MAX = 16;
/** Lines of a file, or of one `POST /agent`, that a value in quotes of csv may go over. */
export const CSV_JOINED_LINES_MAX = 1_000;
/** Characters of lines that are looked at for open quotes in one turn of the event loop. */
export const CSV_TURN_CHARACTERS = 256 * KIB;
export const PARSE_FILE_MAX_BYTES = 256 * MIB;
/** Lines of one `POST /agent`; of those that go to a channel fewer, which a receiver takes at once. */
export const SENT_LINES_MAX = 10_000;
export const SENT_FRAMES_MAX = 1_000;
export const SENT_FRAMES_MAX_CHARACTERS = MIB / 2;

// Agent: what it keeps on the host's disk.
export const OUTBOX_MAX_BYTES = 256 * MIB;
/** The part of the outbox that only results and marks may use. */
export const OUTBOX_RESERVE_BYTES = 16 * MIB;
export const OUTBOX_SEGMENT_BYTES = 8 * MIB;
/** Kept taken, so that a full disk has room for one more file: the one that lets the old ones go. */
export const OUTBOX_BALLAST_BYTES = 256 * KIB;
/** Two of them hold what the batches on the way are parsed by: one such batch at least, whatever its rules are. */
export const OUTBOX_PINS_SLOT_BYTES = 128 * KIB;
/** One atomic append. */
export const OUTBOX_FRAME_MAX_BYTES = 4 * MIB;
/** Distance by which the times of entries may run ahead of the clock. Up to it no two have the same one. */
export const OUTBOX_TIME_AHEAD_MAX_MS = 2_000;
export const OUTBOX_RETRY_MS = 1_000;
/** Between two copies of its marks beside it. */
export const OUTBOX_COPY_MS = 5_000;
/** Concurrent syncs of a depot's files: together they cost the disk little more than one. */
export const FILE_SYNCS_AT_ONCE = 16;
export const JOURNAL_COMMANDS_MAX = 4_096;
/** A finished command is remembered this long after its deadline: no controller repeats it later. */
export const JOURNAL_KEEP_MS = 24 * 3_600_000;

// Agent: the link.
export const SESSION_WELCOME_MS = 10_000;
export const SESSION_BACKOFF_MIN_MS = 200;
/** The longest that controllers are back without an agent trying them: a thousand agents are 130 attempts a second. */
export const SESSION_BACKOFF_MAX_MS = 10_000;
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
/** One batch weighs `SESSION_BATCH_MAX_BYTES` and one entry more; the rest is room for what surrounds records. */
export const AGENT_FRAME_MAX_BYTES = 8 * MIB;
/** `SESSION_WINDOW_ENTRIES` with `RECORDS_PER_ENTRY_MAX` records each, and what surrounds them. */
export const AGENT_FRAME_MAX_FIELDS = 270_000;
export const SESSION_MESSAGE_MAX_BYTES = 16 * MIB;
export const SESSION_KEEPALIVE_MS = 20_000;
export const ENROL_CALL_MS = 15_000;
export const ENROL_ANSWER_MAX_BYTES = MIB;
/** A certificate is renewed when this part of its life has passed. */
export const CERTIFICATE_RENEW_AT = 2 / 3;
export const CERTIFICATE_RENEW_RETRY_MS = 60_000;
/** Longest single timer; longer waits look at the clock again in between. */
export const TIMER_MAX_MS = 60_000;

// Tunnels: connections that an agent opens for the controllers to hosts that only its own reaches.
/** For the connection to the place, with the look-up of its name. */
export const TUNNEL_CONNECT_MS = 15_000;
/** For all of it, as the controller waits: the agent answers sooner. */
export const TUNNEL_ANSWER_MS = 20_000;
/** A tunnel through which nothing came or went for so long is closed; SSH makes itself heard more often. */
export const TUNNEL_SILENCE_MAX_MS = 120_000;
/** Bytes of one frame; gRPC keeps at most 16 frames of a stream that is not read. */
export const TUNNEL_PIECE_MAX_BYTES = 16 * KIB;
/** Bytes of one direction that wait at each end. */
export const TUNNEL_BUFFER_MAX_BYTES = 256 * KIB;
/** One piece and what surrounds it. */
export const TUNNEL_FRAME_MAX_BYTES = 20 * KIB;
export const TUNNEL_FRAME_MAX_FIELDS = 16;
/** More than `SSH_CONNECTIONS_MAX`, for several controllers; less than `AGENT_STREAMS_PER_CONNECTION_MAX`. */
export const AGENT_TUNNELS_MAX = 64;
export const TUNNEL_MESSAGE_MAX_CHARACTERS = 300;

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
/** States of policies that an agent reports, and the length of each. */
export const POLICY_STATES_MAX = 128;
export const POLICY_STATE_MAX_CHARACTERS = 250;
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
/** The last line of a file that is still written to is sent without its end after so long a silence. */
export const LOG_LAST_LINE_MS = 30_000;
/** First bytes of a followed file, and last before the place up to which it was read: by these it is known again. */
export const LOG_HEAD_BYTES = 256;
export const LOG_TAIL_BYTES = 256;
/** A heading line of a file that is sent with its records; a longer one is not. */
export const LOG_HEADING_MAX_BYTES = 8 * KIB;
/** Bytes before the place read in which an agent that does not know the heading line of a file looks for it. */
export const LOG_HEADING_SEARCH_MAX_BYTES = 64 * MIB;
/** A copy that ends before the place read is known by its beginning only if that is not too short. */
export const LOG_COPY_MIN_BYTES = 64;
/**
 * While a followed file is copied it is looked at so often, and for so long, because it may be cut off at any moment.
 */
export const LOG_COPY_LOOK_MS = 2;
export const LOG_COPY_WATCH_MS = 10_000;
/** Files that may be copies of each other are compared to their end in pieces of this size. */
export const LOG_COMPARE_BYTES = 64 * KIB;
/** Distance of the checkpoints by which a copy is known, and that of the first ones is `LOG_HEAD_BYTES`. */
export const LOG_CHECK_BYTES = 4 * KIB;
export const LOG_CHECK_FINE_UNTIL_BYTES = 4 * KIB;
/** Bytes of a hole that one look at a file reads over; the next look goes on behind them. */
export const LOG_HOLE_LOOK_BYTES = 64 * MIB;
/** Unpacked bytes of one packed file that is read. */
export const LOG_PACKED_MAX_BYTES = 1_024 * MIB;
/** Lives of a policy that ended: their packed files are known by these, and are not read again. */
export const LOG_ENDED_LIVES_MAX = 100;
/** Packed files of a policy that hold nothing new. */
export const LOG_PACKED_KNOWN_MAX = 500;
/** Between two looks into a packed file that has no end yet. */
export const LOG_PACKED_LOOK_MS = 1_000;
/** How long a packed file may be without its end until what it holds counts as lost. */
export const LOG_PACKED_WAIT_MS = 30_000;
/**
 * How long the lines of a new file wait for the rest of the one before it, which no look finds or which is being packed;
 * longer than `LOG_PACKED_WAIT_MS`.
 */
export const LOG_ORDER_WAIT_MS = 40_000;
/** Looks into its folder that must fail to find a file before it counts as deleted. */
export const LOG_MISSES_MAX = 5;
/** Times of files are this coarse. */
export const LOG_TIME_GRAIN_MS = 10;
export const LOG_FILES_MAX = 2_000;
export const LOG_OPEN_FILES_MAX = 256;
export const LOG_FOLDERS_MAX = 1_000;
export const LOG_WALK_ENTRIES_MAX = 50_000;
export const LOG_PARALLEL = 8;
