/** Limits of hosts as the controller sees them, and of work on hosts. */

import { DAY_SECONDS, KIB, MIB } from "./units.ts";

// Hosts, enrolment and the controller's end of the agent link.
export const HOST_CONFIG_MAX_ENTRIES = 256;
export const HOST_CONFIG_VALUE_MAX_BYTES = 64 * KIB;
/** A change of a host as JSON; less than `KV_VALUE_MAX_BYTES`. */
export const HOST_CHANGE_MAX_BYTES = 1_000 * KIB;
/** Attempts of one change while other controllers change the same host. */
export const HOST_CHANGE_ATTEMPTS_MAX = 20;
/** Minimum interval between two writes of a connected host's facts. */
export const HOST_FACTS_MIN_INTERVAL_MS = 60_000;
export const HOST_FACTS_MAX_ENTRIES = 64;
/** Minimum interval between two writes of changed policy states, which are written sooner than facts. */
export const HOST_STATES_MIN_INTERVAL_MS = 5_000;
export const HOST_FACT_MAX_BYTES = KIB;
export const JOIN_TOKEN_DEFAULT_MINUTES = 60;
export const JOIN_TOKEN_MAX_MINUTES = 7 * 24 * 60;
/** Time for which a used token answers the same request again, so that a lost answer does no harm. */
export const JOIN_TOKEN_REPEAT_MS = 600_000;
/** Join tokens of a list whose hosts are looked up at the same time. */
export const JOIN_TOKENS_AT_ONCE = 16;
export const CSR_MAX_BYTES = 8 * KIB;
export const CERTIFICATE_COMMON_NAME_MAX = 64;
/** Certificates become valid this much earlier, because clocks differ. */
export const CERTIFICATE_SKEW_MS = 300_000;
export const AGENT_CERTIFICATE_LIFETIME_MS = 24 * 3_600_000;
export const SERVER_CERTIFICATE_LIFETIME_MS = 30 * 24 * 3_600_000;
export const AUTHORITY_LIFETIME_MS = 20 * 365 * 24 * 3_600_000;
export const AGENT_SESSIONS_MAX = 5_000;
export const AGENT_HELLOS_IN_FLIGHT_MAX = 128;
export const AGENT_HELLOS_PER_MINUTE = 60;
/** Deadline for the first frame after the stream is open. */
export const AGENT_HELLO_DEADLINE_MS = 10_000;
export const AGENT_SEND_QUEUE_MAX_FRAMES = 1_024;
export const AGENT_STREAMS_PER_CONNECTION_MAX = 96;
export const AGENT_RENEW_MIN_INTERVAL_MS = 1_000;
export const AGENT_SESSION_LEASE_MS = 15_000;
/** Up to this number hosts are looked up one by one; for more, all sessions of the tenant are read. */
export const PRESENCE_LOOKUPS_MAX = 64;
/**
 * Interval at which a controller looks for hosts whose controller is gone; it also looks whenever a controller leaves.
 */
export const PRESENCE_SWEEP_MS = 60_000;
/** The same interval while sessions of a controller that is gone have not expired. */
export const PRESENCE_SWEEP_AGAIN_MS = 3_000;
/** Concurrent writes of records of hosts whose controller is gone. */
export const PRESENCE_SWEEP_PARALLEL = 32;
/** Interval at which a connected agent's desired state is read again, in case a change notice was lost. */
export const DESIRED_RECHECK_MS = 60_000;
/** Bytes of entries of all agents of a controller that are not stored yet. Beyond it streams are not read. */
export const ENTRIES_WAITING_MAX_BYTES = 64 * MIB;
export const AGENT_REGISTER_ATTEMPTS_MAX = 16;
export const AGENT_COMMANDS_WAITING_MAX = 10_000;
/**
 * Time for the agent to report how a command ended, after a cancel or its deadline. The agent kills a process that
 * ignores TERM after `EXEC_KILL_GRACE_MS`.
 */
export const COMMAND_END_GRACE_MS = 8_000;
export const COMMAND_RECORD_TTL_DAYS = 7;
/** Characters of a command's id, which names its run, its host and its place among the commands of the run. */
export const COMMAND_ID_MAX_CHARACTERS = 512;
export const COMMAND_LINE_MAX_BYTES = 256 * KIB;

// SSH.
export const SSH_CONNECTIONS_MAX = 32;
export const SSH_CONNECT_MS = 15_000;
/** Commands that share one connection to a jump host. More commands use another connection. */
export const SSH_JUMP_TARGETS_MAX = 16;
/** Linux takes 128 KiB in one argument. */
export const SSH_COMMAND_MAX_BYTES = 120 * KIB;
/** Output of one step of the platform itself, such as the digests of a depot. Commands have no such limit. */
export const SSH_STEP_OUTPUT_MAX_BYTES = 64 * MIB;
export const SSH_UPLOADS_AT_ONCE = 16;
export const SSH_KILL_GRACE_MS = 1_000;
/** Time for a command to be ended and dead after a cancel or its deadline; less than `DISPATCH_GRACE_MS`. */
export const SSH_ENDING_MS = 3_000;
export const SSH_JOURNAL_KEEP_MS = 24 * 3_600_000;

// Depots: what one version may hold, and what unpacking an upload may cost.
export const DEPOT_FILES_MAX = 10_000;
export const DEPOT_MAX_BYTES = 1_024 * MIB;
/** Unpacked bytes per packed byte, beyond a free allowance. */
export const DEPOT_RATIO_MAX = 200;
export const DEPOT_RATIO_FREE_BYTES = 8 * MIB;
/** Bytes of a long name or pax header inside a tar archive. */
export const TAR_HEADER_MAX_BYTES = 64 * KIB;
/** Files up to this size are read as a whole and stored in parallel. */
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
/**
 * Time after its deadline until a silent target is given up; more than `COMMAND_END_GRACE_MS` and
 * `COMMAND_LAST_LOOK_MS` together.
 */
export const DISPATCH_GRACE_MS = 9_000;
/** Any controller ends a deployment that is open this long after its deadline. */
export const DEPLOY_LOST_AFTER_MS = 60_000;
/** Time for which late results of an ended deployment are accepted, and commands per host for which they are. */
export const DEPLOY_LATE_KEEP_MS = 7 * 24 * 3_600_000;
export const DEPLOY_LATE_PER_HOST_MAX = 1_000;
/** Time after the deadline in which a host may have answered while its deployment was being ended. */
export const DEPLOY_LATE_FRESH_MS = 600_000;
export const DEPLOY_MESSAGE_MAX_CHARACTERS = 1_000;
export const DEPLOYMENT_TTL_DAYS = 90;
/** Longest time for which a deployment waits for its hosts. */
export const DEPLOY_WAIT_MAX_MS = 7 * 24 * 3_600_000;
/** Open waiting deployments of a tenant, and hosts of all of them together. */
export const DEPLOY_WAITS_MAX = 500;
export const DEPLOY_WAITING_HOSTS_MAX = 20_000;
/** Waiting deployments of a tenant that are listed, with those that ended, and hosts of all of them together. */
export const DEPLOY_WAITS_KEPT_MAX = 1_000;
export const DEPLOY_WAITS_KEPT_HOSTS_MAX = 50_000;
/** Time after its last possible attempt in which a waiting deployment is listed. */
export const DEPLOY_WAITS_KEEP_MS = 7 * 24 * 3_600_000;
/** Time in which a controller stores all hosts of a new waiting deployment. */
export const DEPLOY_WAIT_BEGIN_MS = 600_000;
/** Attempts to change the state of a host while other controllers change it. */
export const DEPLOY_WAIT_CHANGES_MAX = 5;

// External agents.
export const EXTERNAL_AGENT_KEY_MAX_CHARS = 16_000;
/** Time for the processes of an agent to end after its stop command. */
export const EXTERNAL_AGENT_GONE_S = 20;
/** Paths of a depot's programs by which running processes are recognised. */
export const EXTERNAL_AGENT_PROGRAMS_MAX_BYTES = 16 * KIB;

// Targets.
export const TARGET_TEXT_MAX_CHARACTERS = 2_000;
export const TARGET_NAME_MAX_CHARACTERS = 255;
export const TARGET_GROUP_MAX_BYTES = 500;
/** Hosts that the entries of one list name and match. */
export const TARGET_HOSTS_MAX = 10_000;
/** Defaults of the settings `target_hold_percent` and `target_hold_hosts`. */
export const TARGET_HOLD_PERCENT = 20;
export const TARGET_HOLD_HOSTS = 5;
/** Time for which hosts that evaluations took off a policy are counted together. */
export const TARGET_TAKEN_WINDOW_MS = 600_000;
/** Hosts that changed are gathered for this time, and so many; then all hosts are evaluated. */
export const TARGET_GATHER_MS = 200;
export const TARGET_CHANGED_HOSTS_MAX = 500;
/** Names of hosts that one query asks about. */
export const TARGET_NAMES_PER_QUERY = 500;

// Policies.
export const POLICY_HOSTS_MAX = 3_000;
export const POLICIES_PER_HOST_MAX = 500;
export const POLICY_PARALLEL_HOSTS = 16;
/** Lists of hosts that one transaction writes, and transactions at the same time. */
export const POLICY_HOSTS_PER_WRITE = 50;
export const POLICY_PARALLEL_WRITES = 4;
/** Beyond so many hosts the lists of all hosts are read in pages, instead of one by one. */
export const POLICY_LISTS_READ_MAX = 500;
/** Attempts of a change that loses races against other writers. */
export const POLICY_RACES_MAX = 50;
/** Rows of the states of policies that are handed over at once, and those of one more host. */
export const POLICY_STATES_PER_PAGE = 500;
export const POLICY_RUN_TTL_DAYS = 30;
/** Bytes of one conf, and of all confs of one host. An agent gets the latter in one message. */
export const POLICY_CONF_MAX_BYTES = 256 * KIB;
export const POLICY_CONFS_PER_HOST_MAX_BYTES = 2 * MIB;

// Policies over SSH.
/** Runs at once on the controller that runs policies over SSH; less than `SSH_CONNECTIONS_MAX`, so that jobs have room. */
export const POLICY_SSH_RUNS_MAX = 16;
/** Standard output of one run, and its records, which are in memory until they are stored. */
export const POLICY_SSH_OUTPUT_MAX_BYTES = 4 * MIB;
export const POLICY_SSH_RECORDS_MAX = 100_000;
/** Time for records to be stored. Afterwards they are lost, and the run is reported as interrupted. */
export const POLICY_SSH_STORE_MS = 120_000;
/** Longest pause after failures to reach a host, for a policy without `backoff`. */
export const POLICY_SSH_PAUSE_MAX_MS = 300_000;
/** Least time between two looks for policies that changed, and between looks without a change that was seen. */
export const POLICY_SSH_LOOK_MS = 1_000;
export const POLICY_SSH_LOOK_ALL_MS = 300_000;
/** Rest after a look, as a multiple of the time that it took. */
export const POLICY_SSH_LOOK_REST = 20;
/** Pause after a store failed. */
export const POLICY_SSH_AGAIN_MS = 2_000;

// Console logs.
export const CONSOLE_LOG_TTL_DAYS = 30;
export const CONSOLE_LOG_PAGE_ROWS = 200;
export const CONSOLE_LOG_PAGE_MAX_ROWS = 1_000;
export const CONSOLE_LOG_NAME_MAX_CHARACTERS = 1_024;
/** An entry stored this late after its time is still found from the position of an earlier read. */
export const CONSOLE_LOG_SETTLED_MS = 120_000;
/** Latest entries that a position names one by one. Entries before them are not looked for any more. */
export const CONSOLE_LOG_POSITION_MAX_IDS = 64;

// Jobs.
/**
 * Hosts of one execution. A form with all of them and the other members of a definition has fewer than
 * `HTTP_FORM_MAX_FIELDS` fields.
 */
export const JOB_HOSTS_MAX = 1_500;
/** Hosts of a definition that are looked up at the same time. */
export const JOB_HOST_LOOKUPS_AT_ONCE = 16;
export const JOB_COMMANDS_MAX = 50;
/** A definition is one value of the KvStore. */
export const JOB_DEFINITION_MAX_BYTES = 256 * KIB;
/** An `exec` with its `arg`, quoted. A shell takes 128 KiB as one text. */
export const JOB_LINE_MAX_BYTES = 64 * KIB;
/** Attempts of one change while others change the same definition. */
export const JOB_CHANGE_ATTEMPTS_MAX = 20;
export const JOB_PARAM_MAX_BYTES = 64 * KIB;
export const JOB_DEFAULT_S = 60;
export const JOB_MAX_S = 86_400;
/** Maximum time of a script that the controller runs for a job. The time of the run does not change it. */
export const JOB_SCRIPT_MAX_MS = 600_000;
/** Characters of a host's message that the script at the end of a run gets. */
export const JOB_SCRIPT_MESSAGE_MAX_CHARACTERS = 500;
/** Time after the latest end of a run at which a call that waits for it ends. */
export const JOB_CALL_GRACE_MS = 15_000;
/** Unread output per caller; output beyond it is only counted. */
export const JOB_STREAM_BUFFER_BYTES = 4 * MIB;
export const JOB_PARALLEL_HOSTS = 256;
/** Hosts of all executions that run on a controller at the same time. */
export const JOB_RUNS_IN_FLIGHT_MAX = 8_000;
/** Kept output of one run; later output is only counted. */
export const JOB_OUTPUT_MAX_BYTES = 16 * MIB;
/** Output of one run that is returned in one answer. */
export const JOB_ANSWER_MAX_BYTES = MIB;
/** Executions per batch, and their output that is returned in one answer. */
export const JOB_BATCH_MAX = 100;
export const JOB_BATCH_ANSWER_MAX_BYTES = 16 * MIB;
/** Bytes at the beginning of standard output and error that the run's row keeps. */
export const JOB_ROW_OUTPUT_MAX_BYTES = 64 * KIB;
/** Rows of runs of one tenant and class per write, and concurrent writes. */
export const JOB_ROWS_PER_WRITE = 100;
export const JOB_ROW_WRITES_AT_ONCE = 2;
/** Attempts to record the end of a run while the store is unavailable, and the first pause between them. */
export const JOB_FINISH_ATTEMPTS = 6;
export const JOB_FINISH_PAUSE_MS = 500;
export const JOB_RUN_TTL_DAYS = 30;
/** Any controller ends a run that is open this long after its deadline. */
export const JOB_LOST_AFTER_MS = 60_000;
/** Interval at which a controller whose run was taken over reads how it ended. */
export const JOB_FOLLOW_POLL_MS = 500;
/**
 * Time a run that was taken over waits for its host to connect to another controller, and the interval of its looks.
 */
export const JOB_HOST_RETURN_MS = 40_000;
export const JOB_HOST_RETURN_PAUSE_MS = 250;
export const JOB_MESSAGE_MAX_CHARACTERS = 8_000;
/** Bytes at the end of an output in which lines are counted back. */
export const JOB_TAIL_MAX_BYTES = MIB;
/** Retry interval of a controller that could not start to listen for cancels. */
export const JOB_CANCEL_LISTEN_AGAIN_MS = 1_000;
/** Retries of a failed host within one run, and the longest pause before a retry. */
export const JOB_RETRIES_MAX = 20;
export const JOB_RETRY_DELAY_MAX_S = 3_600;
/** Characters of the message of an attempt that was not the last. */
export const JOB_TRY_MESSAGE_MAX_CHARACTERS = 200;
/** Maximum of `keep`: the number of runs that are kept of a job. */
export const JOB_KEEP_MAX = 10_000;
/** Jobs whose runs a controller counts for their `keep`, and jobs handled in one step. */
export const JOB_RETENTION_JOBS_MAX = 10_000;
export const JOB_RETENTION_JOBS_PER_SWEEP = 20;
/** Rows of one job that one step removes, and concurrent removals. */
export const JOB_RETENTION_ROWS_PER_SWEEP = 1_000;
export const JOB_RETENTION_PARALLEL = 16;
/** Old runs are looked for after this fraction of the kept number has been added. */
export const JOB_RETENTION_PART = 0.1;
/** Interval from the last look at all definitions to the next look at jobs with `keepdays`. */
export const JOB_RETENTION_LOOK_MS = 600_000;

// Schedules of jobs.
export const SCHEDULE_TEXT_MAX_CHARACTERS = 500;
export const SCHEDULE_PERIOD_MAX_S = 366 * DAY_SECONDS;
export const SCHEDULE_JITTER_MAX_S = DAY_SECONDS;
/** Lateness from which a time counts as missed. A time that is less late is still fired. */
export const SCHEDULE_LATE_MS = 60_000;
/** Time after which another controller fires schedules if the current one is gone. */
export const SCHEDULER_LEASE_MS = 10_000;
/** Interval at which the others check whether a controller fires schedules. */
export const SCHEDULER_LOOK_MS = 2_000;
/** Concurrent firings, and the retry interval of a failed one. */
export const SCHEDULE_PARALLEL = 64;
export const SCHEDULE_AGAIN_MS = 1_000;
/** Interval at which the time of day is checked while there are schedules, because it may be set. */
export const SCHEDULE_LOOK_MS = 1_000;
/** Parsed schedules cached by text. Those of days take some 100 KB each, all others little. */
export const SCHEDULES_KEPT = 1_000;
export const SCHEDULE_FIELDS_KEPT = 1_000;
export const SCHEDULE_DAYS_KEPT = 400;
// Executions that wait for others of their queue.
export const JOB_QUEUE_MAX = 1_000;
/** Interval at which the first in a queue checks for its turn; those behind it check less often, up to the maximum. */
export const JOB_QUEUE_LOOK_MS = 1_000;
export const JOB_QUEUE_LOOK_MAX_MS = 15_000;
/** An execution that waits longer for its turn ends as `expired`. */
export const JOB_QUEUE_WAIT_MAX_MS = 86_400_000;
/** Future times that are shown. */
export const SCHEDULE_PREVIEW_MAX = 5;

// Job context: names and texts that the parts of a run share.
export const JOB_CONTEXT_NAME_MAX_BYTES = 256;
export const JOB_CONTEXT_VALUE_MAX_BYTES = 64 * KIB;
/** Values of one context. Callers that set new names at the same time may exceed it by as many as they are. */
export const JOB_CONTEXT_VALUES_MAX = 1_000;
/** Bytes of names and values that one read returns. */
export const JOB_CONTEXT_READ_MAX_BYTES = 8 * MIB;
// Groups of hosts that jobs name. A group is one value of the KvStore.
export const JOB_GROUP_NAME_MAX_BYTES = 256;
export const JOB_GROUP_HOSTS_MAX = 1_000;
export const JOB_GROUPS_MAX = 1_000;
/** Less than `KV_VALUE_MAX_BYTES`. */
export const JOB_GROUP_MAX_BYTES = 1_000 * KIB;
/** Bytes of a password, or of a private key used instead. */
export const JOB_GROUP_PASSWORD_MAX_BYTES = 16 * KIB;
/** Attempts of one change while others change the same group. */
export const JOB_GROUP_CHANGE_ATTEMPTS_MAX = 20;
