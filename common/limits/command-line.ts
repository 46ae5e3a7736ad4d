/** Limits of the command line (`controller/cli`). */

import { KIB, MIB } from "./units.ts";

/** Bytes of the standard input of `odp exec`. In base64, with the command beside it, it fits into `JOB_PARAM_MAX_BYTES`. */
export const CLI_EXEC_INPUT_MAX_BYTES = 40 * KIB;
/** Longer parameters of a run are sent in a body: the head of a request has an end. */
export const CLI_QUERY_MAX_CHARACTERS = 4_000;
/** Bytes of a line of output that the command line shows for one of several hosts; longer lines are split. */
export const CLI_LINE_MAX_BYTES = 64 * KIB;
/** Columns of a terminal that a cell of a table takes at most where the width of the terminal is not known. */
export const CLI_CELL_MAX_COLUMNS = 60;
/** As above for `-o wide`. */
export const CLI_WIDE_CELL_MAX_COLUMNS = 2_000;
/** A column of a table is not made narrower than this to fit the terminal. */
export const CLI_CELL_MIN_COLUMNS = 8;
/** File of contexts. */
export const CLI_CONTEXTS_MAX_BYTES = MIB;
/** A password, token or code that is typed or read from the standard input. */
export const CLI_SECRET_MAX_BYTES = 4 * KIB;
/** A definition or a value that is read from a file or the standard input. */
export const CLI_INPUT_MAX_BYTES = 16 * MIB;
/** File of a depot, which is held as a whole. */
export const CLI_UPLOAD_MAX_BYTES = 512 * MIB;
/** Runs of a policy or job that are looked at for the newest of each host. */
export const CLI_RUNS_MAX = 1_000;
/** Time between two answers of `--watch`; and the longest one that can be chosen. */
export const CLI_WATCH_SECONDS = 2;
export const CLI_WATCH_MAX_SECONDS = 3_600;
/** Time between two looks of `odp wait`, and how long it waits if no other time is given. */
export const CLI_WAIT_LOOK_MS = 1_000;
export const CLI_WAIT_SECONDS = 300;
/** Longest time that `odp wait` takes. */
export const CLI_WAIT_MAX_SECONDS = 7 * 24 * 3_600;
/** Time between two looks of `odp wait`, at most: it grows while nothing changes. */
export const CLI_WAIT_LOOK_MAX_MS = 10_000;
/** Time for each call of `odp doctor`. */
export const CLI_DOCTOR_CALL_MS = 10_000;
/** The newest rows of each kind of error in its bundle. */
export const CLI_DOCTOR_ROWS_MAX = 100;
/** Difference of clocks, and time until the end of a certificate, of which it does not warn. */
export const CLI_DOCTOR_CLOCK_MAX_MS = 2_000;
export const CLI_DOCTOR_CERTIFICATE_DAYS = 14;
/** Rows of an answer that are held for the columns of CSV; the others are written as they arrive. */
export const CLI_STREAM_FIRST_ROWS = 2_000;
/** One row of an answer that is written as it arrives. */
export const CLI_ROW_MAX_CHARACTERS = 256 * MIB;
/** Time for the candidates of a completion that the controller has to tell. */
export const CLI_COMPLETION_MS = 1_500;
/** Calls of one command that are under way at once, as one for each group. */
export const CLI_CALLS_AT_ONCE = 8;
/** Runs on hosts whose output a command follows at once; the output of the others is stored, and follows later. */
export const CLI_FOLLOWED_HOSTS_MAX = 32;
/** Entries of a console log that a command shows, and that it reads by one call. */
export const CLI_LOG_LINES_MAX = 1_000;
/** As above, if the user says nothing. */
export const CLI_LOG_LINES_DEFAULT = 100;
/** Calls by which a command reads a console log up to the present. */
export const CLI_LOG_PAGES_MAX = 100;
/** Hosts of a run that a command follows. */
export const CLI_RUN_HOSTS_MAX = 10_000;
/** Pause between two looks at a run that has begun on no further host. */
export const CLI_RUN_POLL_MS = 500;
/** Pause before a command connects again to follow notifications. */
export const CLI_RECONNECT_MS = 2_000;
/** Runs whose ids complete a word, the newest. */
export const CLI_COMPLETED_RUNS_MAX = 50;
/** Time to connect to a controller, with TLS; as that of the `fetch` of Node. */
export const CLI_CONNECT_MAX_MS = 10_000;
/** Time after which an idle connection is closed. It is shorter than that of servers: a call never meets their close. */
export const CLI_IDLE_CONNECTION_MS = 4_000;
