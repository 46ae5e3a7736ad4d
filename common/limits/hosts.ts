/** Limits of hosts as the controller sees them, and of work on hosts. */

import { DAY_SECONDS, KIB, MIB } from "./units.ts";

// Hosts, enrolment and the controller's end of the agent link.
export const HOST_CONFIG_MAX_ENTRIES = 256;
export const HOST_CONFIG_VALUE_MAX_BYTES = 64 * KIB;
/** Facts of a connected host are written at most this often. */
export const HOST_FACTS_MIN_INTERVAL_MS = 60_000;
export const HOST_FACTS_MAX_ENTRIES = 64;
/** States of policies that changed are written sooner than facts, but not more often than this. */
export const HOST_STATES_MIN_INTERVAL_MS = 5_000;
export const HOST_FACT_MAX_BYTES = KIB;
export const JOIN_TOKEN_DEFAULT_MINUTES = 60;
export const JOIN_TOKEN_MAX_MINUTES = 7 * 24 * 60;
/** A used token answers the same request again for so long, so that a lost answer is no dead end. */
export const JOIN_TOKEN_REPEAT_MS = 600_000;
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
export const AGENT_STREAMS_PER_CONNECTION_MAX = 96;
export const AGENT_RENEW_MIN_INTERVAL_MS = 1_000;
export const AGENT_SESSION_LEASE_MS = 15_000;
/** Sessions of more hosts than these are found by reading all of the tenant. */
export const PRESENCE_LOOKUPS_MAX = 64;
/** How often one controller looks for hosts whose controller is gone, besides whenever one goes. */
export const PRESENCE_SWEEP_MS = 60_000;
/** The same while sessions of one that is gone have not run out. */
export const PRESENCE_SWEEP_AGAIN_MS = 3_000;
/** Hosts of a controller that is gone whose records are written at once. */
export const PRESENCE_SWEEP_PARALLEL = 32;
/** The interval at which a connected agent's desired state is read again, in case a change notice was lost. */
export const DESIRED_RECHECK_MS = 60_000;
/** Entries of all agents of a controller that are not stored yet; streams are not read meanwhile. */
export const ENTRIES_WAITING_MAX_BYTES = 64 * MIB;
export const AGENT_REGISTER_ATTEMPTS_MAX = 16;
export const AGENT_COMMANDS_WAITING_MAX = 10_000;
/**
 * After a cancel, or at its deadline, the agent has this long to report how the command ended: it kills after
 * `EXEC_KILL_GRACE_MS` what ignores TERM.
 */
export const COMMAND_END_GRACE_MS = 8_000;
export const COMMAND_RECORD_TTL_DAYS = 7;
/** Characters of the id of a command, which names its run, host and place among the commands of the run. */
export const COMMAND_ID_MAX_CHARACTERS = 512;
export const COMMAND_LINE_MAX_BYTES = 256 * KIB;

// SSH.
export const SSH_CONNECTIONS_MAX = 32;
export const SSH_CONNECT_MS = 15_000;
/** Hosts that are reached through one connection to their jump host at the same time; others have another connection. */
export const SSH_JUMP_TARGETS_MAX = 16;
/** Linux takes 128 KiB in one argument. */
export const SSH_COMMAND_MAX_BYTES = 120 * KIB;
/** Of one step of the platform's own, such as the digests of a depot; commands write as much as they like. */
export const SSH_STEP_OUTPUT_MAX_BYTES = 64 * MIB;
export const SSH_UPLOADS_AT_ONCE = 16;
export const SSH_KILL_GRACE_MS = 1_000;
/** After a cancel, or at its deadline, a command has this long to be ended and dead; less than `DISPATCH_GRACE_MS`. */
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
/**
 * How long after its time a target that does not answer is given up: more than `COMMAND_END_GRACE_MS` and
 * `COMMAND_LAST_LOOK_MS`.
 */
export const DISPATCH_GRACE_MS = 9_000;
/** Any controller that finds a deployment still open this long after its deadline ends it. */
export const DEPLOY_LOST_AFTER_MS = 60_000;
/** How long what a host says of a deployment that is over is still taken, and of how many commands of a host. */
export const DEPLOY_LATE_KEEP_MS = 7 * 24 * 3_600_000;
export const DEPLOY_LATE_PER_HOST_MAX = 1_000;
/** For so long it is looked whether a host answered while its deployment was being ended. */
export const DEPLOY_LATE_FRESH_MS = 600_000;
export const DEPLOY_MESSAGE_MAX_CHARACTERS = 1_000;
export const DEPLOYMENT_TTL_DAYS = 90;

// Policies.
export const POLICY_HOSTS_MAX = 3_000;
export const POLICIES_PER_HOST_MAX = 500;
export const POLICY_PARALLEL_HOSTS = 16;
/** Attempts at a change that loses races against other writers. */
export const POLICY_RACES_MAX = 50;
export const POLICY_RUN_TTL_DAYS = 30;

// Console logs.
export const CONSOLE_LOG_TTL_DAYS = 30;
export const CONSOLE_LOG_PAGE_ROWS = 200;
export const CONSOLE_LOG_PAGE_MAX_ROWS = 1_000;
export const CONSOLE_LOG_NAME_MAX_CHARACTERS = 1_024;
/** An entry that is stored so long after its time is still told by the position of an earlier read. */
export const CONSOLE_LOG_SETTLED_MS = 120_000;
/** Latest entries that a position names one by one; before them nothing is looked for any more. */
export const CONSOLE_LOG_POSITION_MAX_IDS = 64;

// Jobs.
/** Of one execution: a form with all of them and the other members of a definition has fewer than `HTTP_FORM_MAX_FIELDS`. */
export const JOB_HOSTS_MAX = 1_500;
export const JOB_COMMANDS_MAX = 50;
/** A definition is one value of the KvStore. */
export const JOB_DEFINITION_MAX_BYTES = 256 * KIB;
/** An `exec` with its `arg`, quoted: a shell takes 128 KiB as one text. */
export const JOB_LINE_MAX_BYTES = 64 * KIB;
/** Attempts of one change while others change the same definition. */
export const JOB_CHANGE_ATTEMPTS_MAX = 20;
export const JOB_PARAM_MAX_BYTES = 64 * KIB;
export const JOB_DEFAULT_S = 60;
export const JOB_MAX_S = 86_400;
/** Of a script that the controller runs for a job, however long the run may take. */
export const JOB_SCRIPT_MAX_MS = 600_000;
/** Of a message of a host, as the script at the end of a run is told it. */
export const JOB_SCRIPT_MESSAGE_MAX_CHARACTERS = 500;
/** A call that waits for a run ends so long after the run must have. */
export const JOB_CALL_GRACE_MS = 15_000;
/** Output that a caller has not read yet; what comes beyond is counted for it. */
export const JOB_STREAM_BUFFER_BYTES = 4 * MIB;
export const JOB_PARALLEL_HOSTS = 256;
/** Hosts of all executions that a controller carries out at the same time. */
export const JOB_RUNS_IN_FLIGHT_MAX = 8_000;
/** Output kept of one run; what comes after is counted, not kept. */
export const JOB_OUTPUT_MAX_BYTES = 16 * MIB;
/** Output of one run that is answered at once. */
export const JOB_ANSWER_MAX_BYTES = MIB;
/** Executions of one batch, and the output of all of them that is answered. */
export const JOB_BATCH_MAX = 100;
export const JOB_BATCH_ANSWER_MAX_BYTES = 16 * MIB;
/** First part of standard output and error kept in the run's row. */
export const JOB_ROW_OUTPUT_MAX_BYTES = 64 * KIB;
/** Rows of runs of one tenant and class that are written in one write, and such writes under way at once. */
export const JOB_ROWS_PER_WRITE = 100;
export const JOB_ROW_WRITES_AT_ONCE = 2;
/** How often, and after which first pause, the end of a run is tried to be recorded while the store is away. */
export const JOB_FINISH_ATTEMPTS = 6;
export const JOB_FINISH_PAUSE_MS = 500;
export const JOB_RUN_TTL_DAYS = 30;
/** Any controller that finds a run still open this long after its deadline ends it. */
export const JOB_LOST_AFTER_MS = 60_000;
/** The interval at which a controller whose run was taken over reads how the run ended. */
export const JOB_FOLLOW_POLL_MS = 500;
/** A run that was taken over waits so long for its host to come to another controller, and looks this often. */
export const JOB_HOST_RETURN_MS = 40_000;
export const JOB_HOST_RETURN_PAUSE_MS = 250;
export const JOB_MESSAGE_MAX_CHARACTERS = 8_000;
/** Of the end of an output, as far as lines are counted back in it. */
export const JOB_TAIL_MAX_BYTES = MIB;
/** A controller that could not begin to listen for cancels tries again so much later. */
export const JOB_CANCEL_LISTEN_AGAIN_MS = 1_000;
/** How often a host that failed is tried again in one run, and the longest pause before. */
export const JOB_RETRIES_MAX = 20;
export const JOB_RETRY_DELAY_MAX_S = 3_600;
/** Of the message of a try that was not the last. */
export const JOB_TRY_MESSAGE_MAX_CHARACTERS = 200;
/** The most runs that a job may say are kept of it. */
export const JOB_KEEP_MAX = 10_000;
/** How many jobs a controller counts the runs of, for their `keep`, and looks after in one step. */
export const JOB_RETENTION_JOBS_MAX = 10_000;
export const JOB_RETENTION_JOBS_PER_SWEEP = 20;
/** Rows of one job that one step removes, and how many at once. */
export const JOB_RETENTION_ROWS_PER_SWEEP = 1_000;
export const JOB_RETENTION_PARALLEL = 16;
/** Old runs are looked for whenever this part of those that are kept has come anew. */
export const JOB_RETENTION_PART = 0.1;
/** Jobs with `keepdays` are looked at again so long after the last of all definitions was. */
export const JOB_RETENTION_LOOK_MS = 600_000;

// Schedules of jobs.
export const SCHEDULE_TEXT_MAX_CHARACTERS = 500;
export const SCHEDULE_PERIOD_MAX_S = 366 * DAY_SECONDS;
export const SCHEDULE_JITTER_MAX_S = DAY_SECONDS;
/** A time that came so long ago was missed; one that is less late is fired as if it were not. */
export const SCHEDULE_LATE_MS = 60_000;
/** The controller that fires is another one so long after it went away. */
export const SCHEDULER_LEASE_MS = 10_000;
/** How often the others look whether one fires. */
export const SCHEDULER_LOOK_MS = 2_000;
/** Firings that are decided at the same time; how often one that failed is tried again. */
export const SCHEDULE_PARALLEL = 64;
export const SCHEDULE_AGAIN_MS = 1_000;
/** With schedules there, the time of day is looked at this often: it may have been set. */
export const SCHEDULE_LOOK_MS = 1_000;
/** What is kept of schedules that were read, by text: those of days take some 100 KB each, all others little. */
export const SCHEDULES_KEPT = 1_000;
export const SCHEDULE_FIELDS_KEPT = 1_000;
export const SCHEDULE_DAYS_KEPT = 400;
// Executions that wait for others of their queue.
export const JOB_QUEUE_MAX = 1_000;
/** The next in a queue looks this often whether its turn has come, those behind it less often, at least so often. */
export const JOB_QUEUE_LOOK_MS = 1_000;
export const JOB_QUEUE_LOOK_MAX_MS = 15_000;
/** An execution whose turn has not come by then ends as `expired`. */
export const JOB_QUEUE_WAIT_MAX_MS = 86_400_000;
/** Times that are shown of those to come. */
export const SCHEDULE_PREVIEW_MAX = 5;

// Job context: names and texts that the parts of a run share.
export const JOB_CONTEXT_NAME_MAX_BYTES = 256;
export const JOB_CONTEXT_VALUE_MAX_BYTES = 64 * KIB;
/** Of one context. Who set new names at the same time may go beyond by as many as they are. */
export const JOB_CONTEXT_VALUES_MAX = 1_000;
/** Bytes of names and values that one read answers. */
export const JOB_CONTEXT_READ_MAX_BYTES = 8 * MIB;
// Groups of hosts that jobs name. A group is one value of the KvStore.
export const JOB_GROUP_NAME_MAX_BYTES = 256;
export const JOB_GROUP_HOSTS_MAX = 1_000;
export const JOB_GROUPS_MAX = 1_000;
/** Less than `KV_VALUE_MAX_BYTES`. */
export const JOB_GROUP_MAX_BYTES = 1_000 * KIB;
/** Of a password, or a private key in its place. */
export const JOB_GROUP_PASSWORD_MAX_BYTES = 16 * KIB;
/** Attempts of one change while others change the same group. */
export const JOB_GROUP_CHANGE_ATTEMPTS_MAX = 20;
