import { Type, type Static } from "typebox";
import {
  JOB_BATCH_MAX,
  JOB_COMMANDS_MAX,
  JOB_DEFAULT_S,
  JOB_HOSTS_MAX,
  JOB_KEEP_MAX,
  JOB_RETRIES_MAX,
  JOB_RETRY_DELAY_MAX_S,
  JOB_RUN_TTL_DAYS,
  JOB_TAIL_MAX_BYTES,
  SCHEDULE_TEXT_MAX_CHARACTERS,
} from "../limits.ts";
import { ENCODING_NAMES, JOB_NAME, oneOfWords, PATH_BELOW, PLAIN_TEXT, SOME, TTL } from "./documented.ts";
import { HOST_USER } from "./policy-runs.ts";
import { Revision } from "./revision.ts";
import { HostEntryOrEmpty } from "./targets.ts";

const Name = Type.String({ minLength: 1, maxLength: 600, description: "<name>@<dir>" });
const Text = (maxLength: number) => Type.String({ maxLength });

/** A folder of jobs, with or without slashes at its ends; empty: none. */
const JOB_FOLDER = { pattern: `^/*$|${PATH_BELOW.pattern}` };
const ARGUMENT_ENCODING = oneOfWords(ENCODING_NAMES.filter((name) => !name.startsWith("utf-16")));

const members = {
  description: Type.Optional(Type.String({ maxLength: 4_000, description: "Description for people" })),
  group: Type.Optional(Type.String({ maxLength: 4_000, description: "groups of hosts, separated by commas" })),
  groupmode: Type.Optional(
    Type.Union([Type.Literal("one"), Type.Literal("parallel"), Type.Literal("sequence"), Type.Literal("")], {
      description:
        "parallel or empty: the hosts side by side; sequence: one after another; one: on one host, chosen by algorithm",
    }),
  ),
  host: Type.Optional(Type.Array(HostEntryOrEmpty, { maxItems: JOB_HOSTS_MAX })),
  begin: Type.Optional(
    Type.String({
      maxLength: 64_000,
      description: "Script that runs on the controller before the first host; empty: none",
    }),
  ),
  end: Type.Optional(
    Type.String({
      maxLength: 64_000,
      description: "Script that runs on the controller after the last host; empty: none",
    }),
  ),
  arg: Type.Optional(
    Type.Array(Type.String({ maxLength: 8_000, documented: { pattern: "^[^\\u0000]*$" } }), {
      maxItems: JOB_COMMANDS_MAX,
      description: "appended to every exec, each as one word",
    }),
  ),
  argenc: Type.Optional(
    Type.String({
      maxLength: 100,
      documented: ARGUMENT_ENCODING,
      description: "Encoding of commands and their output on the hosts; empty: UTF-8",
    }),
  ),
  user: Type.Optional(
    Type.String({
      pattern: HOST_USER,
      description:
        "User of the hosts who runs the commands; empty: the user of the agent, or that of the SSH login. An agent runs them as another user only if it is root, SSH never",
    }),
  ),
  schedule: Type.Optional(
    Type.String({
      maxLength: SCHEDULE_TEXT_MAX_CHARACTERS,
      description:
        "[cron] with five or six fields, @hourly|@daily|@weekly|@monthly|@yearly, every 30s|5m|2h|1d, or at <time>; then, each with a ; before it, tz=<zone>; missed=skip|last|all; overlap=skip|queue|allow; jitter=<duration>",
    }),
  ),
  algorithm: Type.Optional(
    Type.String({
      maxLength: 100,
      description: "of groupmode one: roundrobin, leastload, random or sticky",
      documented: oneOfWords(["", "roundrobin", "leastload", "random", "sticky"]),
    }),
  ),
  limit: Type.Optional(
    Type.Integer({ description: "Most executions at once, on all controllers together; 0 or less: no limit" }),
  ),
  queue: Type.Optional(
    Type.String({ maxLength: 200, description: "Queue whose jobs run one after another; empty: none" }),
  ),
  retry: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: JOB_RETRIES_MAX,
      description: "how often a host that failed is tried again; timeout is of each try",
    }),
  ),
  retrydelay: Type.Optional(
    Type.Integer({ minimum: 0, maximum: JOB_RETRY_DELAY_MAX_S, description: "seconds before each of these tries" }),
  ),
  keep: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: JOB_KEEP_MAX,
      description: `most runs that are kept of it, the newest, with their output; 0: all of the days that they are kept`,
    }),
  ),
  keepdays: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: JOB_RUN_TTL_DAYS,
      description: `for how many days its runs are kept, with their output; 0: ${JOB_RUN_TTL_DAYS}`,
    }),
  ),
  tag: Type.Optional(Type.Array(Text(500), { maxItems: 1_000, description: "Tags of the job" })),
};
const naming = {
  name: Type.String({
    minLength: 1,
    maxLength: 200,
    documented: JOB_NAME,
    description: "Name of the job, without its folder",
  }),
  dir: Type.Optional(
    Type.String({ maxLength: 300, documented: JOB_FOLDER, description: "Folder of the job; empty: none" }),
  ),
};
const Commands = Type.Array(Type.String({ maxLength: 8_000, documented: { pattern: "^[^\\u0000]+$" } }), {
  maxItems: JOB_COMMANDS_MAX,
  description: "command lines for the host's shell",
  documented: SOME,
});
const Timeout = (more: object) => Type.Optional(Type.Integer({ ...more, description: "seconds" }));
const Enable = (more: object) =>
  Type.Optional(Type.Integer({ ...more, minimum: 0, maximum: 1, description: "1: the schedule is on; 0: it is off" }));

/** The definition of a job. */
export const JobInput = Type.Object({
  ...naming,
  ...members,
  exec: Commands,
  timeout: Timeout({ default: JOB_DEFAULT_S }),
  enable: Enable({ default: 1 }),
});
export type JobInput = Static<typeof JobInput>;

const changed = { ...members, exec: Type.Optional(Commands), timeout: Timeout({}), enable: Enable({}) };

/** Members of a job to change; absent members stay unchanged. */
export const JobChange = Type.Object({ ...naming, ...changed });
export type JobChange = Static<typeof JobChange>;

/** The same for a job that the path names. */
export const JobPatch = Type.Object({ "*": Name, ...changed });
export type JobPatch = Static<typeof JobPatch>;

/** A job as clients read it, with all members. */
export const JobRecord = Type.Object({
  id: Type.String({ description: "Id of the job as an object" }),
  class: Type.String({ description: "Class of the job as an object" }),
  fullname: Type.String({ description: "<name>@<dir>" }),
  name: Type.String({ description: "Name of the job, without its folder" }),
  dir: Type.String({ description: "Folder of the job; empty: none" }),
  description: Type.String({ description: "Description for people" }),
  group: Type.String({ description: "Groups of hosts, separated by commas; empty: none" }),
  groupmode: Type.String({
    description: "parallel or empty: the hosts side by side; sequence: one after another; one: on one host",
  }),
  host: Type.Array(Type.String(), { description: "Hosts, as names and expressions" }),
  begin: Type.String({ description: "Script that runs on the controller before the first host; empty: none" }),
  end: Type.String({ description: "Script that runs on the controller after the last host; empty: none" }),
  exec: Type.Array(Type.String(), { description: "Command lines" }),
  arg: Type.Array(Type.String(), { description: "Words that are appended to every command line" }),
  argenc: Type.String({ description: "Encoding of commands and their output on the hosts; empty: UTF-8" }),
  user: Type.String({ description: "User of the hosts who runs the commands; empty: that of the agent or the login" }),
  schedule: Type.String({ description: "When the job runs by itself; empty: never" }),
  timeout: Type.Integer({ description: "seconds" }),
  algorithm: Type.String({ description: "How groupmode one chooses the host" }),
  limit: Type.Integer({ description: "Most executions at once, on all controllers together; 0 or less: no limit" }),
  enable: Type.Integer({ description: "1: the schedule is on; 0: it is off" }),
  queue: Type.String({ description: "Queue whose jobs run one after another; empty: none" }),
  retry: Type.Integer({ description: "How often a host that failed is tried again" }),
  retrydelay: Type.Integer({ description: "seconds" }),
  keep: Type.Integer({ description: "Most runs that are kept, the newest; 0: all of the days that they are kept" }),
  keepdays: Type.Integer({ description: "days" }),
  next: Type.Optional(Type.Array(Type.Integer(), { description: "when its schedule comes next, in milliseconds" })),
  tag: Type.Array(Type.String(), { description: "Tags of the job" }),
  system: Type.Boolean({ description: "belongs to the platform" }),
  created: Type.Integer({ description: "milliseconds since 1970" }),
  changed: Type.Integer({ description: "milliseconds since 1970" }),
  creator: Type.String({ description: "User who made the job" }),
  revision: Revision,
});
export type JobRecord = Static<typeof JobRecord>;

export const JobList = Type.Object({});
export const JobSelect = Type.Object({ "*": Name });

export const JobOutputSelect = Type.Object({
  runid: Type.String({ minLength: 1, maxLength: 100, description: "Id of the run" }),
  host: Type.String({ minLength: 1, maxLength: 255, description: "Host of the run" }),
  from: Type.Optional(Type.Integer({ minimum: 0, description: "bytes of the output that the reader has" })),
  to: Type.Optional(Type.Integer({ minimum: 0, description: "ends before this byte, without waiting for the run" })),
  tail: Type.Optional(
    Type.Integer({ minimum: 0, description: "begins so many bytes before the end of what is there, not before from" }),
  ),
  lines: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: `begins so many lines before the end of what is there, at most ${JOB_TAIL_MAX_BYTES} bytes before it`,
    }),
  ),
});

const JobOutputEnd = Type.Object(
  {
    state: Type.String({ description: "ok, failed, timeout, unreachable, cancelled or expired" }),
    code: Type.Optional(Type.Integer({ description: "Exit code of the command; absent if there is none" })),
    signal: Type.Optional(
      Type.String({ description: "that ended the command: SIGKILL; absent: none, or its host does not tell" }),
    ),
    message: Type.String({ description: "Reason of a state that is not ok" }),
  },
  { description: "End of the run; absent before" },
);
export type JobOutputEnd = Static<typeof JobOutputEnd>;

/**
 * Bytes of the output from `from` up to, but not including, `to`: standard output and error in the order of arrival. Or
 * the end of the run.
 */
export const JobOutputPart = Type.Object({
  from: Type.Optional(Type.Integer({ description: "Position of the first byte in the output" })),
  to: Type.Optional(Type.Integer({ description: "Position behind the last byte" })),
  data: Type.Optional(Type.String({ description: "base64" })),
  end: Type.Optional(JobOutputEnd),
});
export type JobOutputPart = Static<typeof JobOutputPart>;

const JobRunEnd = Type.Object({
  host: Type.String({ description: "Host of the run" }),
  state: Type.String({ description: "ok, failed, timeout, unreachable, cancelled or expired" }),
  code: Type.Optional(Type.Integer({ description: "exit code of the command" })),
  signal: Type.Optional(
    Type.String({ description: "that ended the command: SIGKILL; absent: none, or its host does not tell" }),
  ),
  message: Type.String({ description: "Reason of a state that is not ok" }),
});

/** A line of the streamed output of an execution: a piece, the id of the run, or the end. */
export const JobOutputLine = Type.Union([
  Type.Object({
    host: Type.String({ description: "Host with the output" }),
    stream: Type.Union([Type.Literal("stdout"), Type.Literal("stderr")], {
      description: "Standard output or standard error",
    }),
    data: Type.String({ description: "base64" }),
  }),
  Type.Object({
    runid: Type.String({ description: "Id of the run" }),
    runs: Type.Array(JobRunEnd, { description: "End of each run" }),
    skipped: Type.Integer({ description: "bytes that are left out here, because they were read too slowly" }),
    message: Type.Optional(Type.String({ description: "why the run failed as a whole" })),
  }),
  Type.Object({ runid: Type.String({ description: "Id of the run, as soon as it is known" }) }),
]);

export const JobExecution = Type.Object({
  "*": Name,
  param: Type.Optional(
    Type.String({
      description:
        'JSON object; `HOST!` overrides the hosts, `GROUP!` the groups, `timeout` the time; `STDIN!` is the standard input of each command, a text or {"base64": "…"}; the rest is the environment',
    }),
  ),
  receive_output: Type.Optional(Type.Boolean({ description: "waits for the end and answers the output" })),
  stream: Type.Optional(
    Type.Boolean({
      description:
        "answers lines of JSON as the output comes: {host, stream, data} with data in base64, {runid} once it is known, at last {runid, runs}; who goes away cancels the commands",
    }),
  ),
  timeout: Type.Optional(Type.Integer({ description: "seconds" })),
});
export type JobExecution = Static<typeof JobExecution>;

export const JobRetry = Type.Object({
  runid: Type.String({ minLength: 1, maxLength: 100, description: "Id of the run whose failed hosts are tried again" }),
  param: Type.Optional(
    Type.String({ description: "JSON object, as of the run that is tried again: what that was given is not kept" }),
  ),
  timeout: Type.Optional(Type.Integer({ description: "seconds" })),
});

export const JobCancel = Type.Object({
  runid: Type.String({ minLength: 1, maxLength: 100, description: "Id of the run" }),
  host: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: "only there; absent: everywhere" })),
});

export const JobRunSelect = Type.Object({
  runid: Type.String({ minLength: 1, maxLength: 100, description: "Id of the run" }),
});

/** How an execution stands as a whole. */
export const JobRunState = Type.Object({
  runid: Type.String({ description: "Id of the run" }),
  job: Type.String({ description: "<name>@<dir>" }),
  state: Type.Union([Type.Literal("waiting"), Type.Literal("running"), Type.Literal("ended")], {
    description:
      "waiting: it has begun nothing yet, as in a queue; ended: all hosts and scripts have their ends, and none follows",
  }),
  started: Type.Optional(Type.Number({ description: "Milliseconds since 1970; absent while it waits" })),
  ended: Type.Optional(Type.Number({ description: "Milliseconds since 1970 of the last end; absent before" })),
  hosts: Type.Record(Type.String(), Type.Integer(), {
    description:
      "Number of hosts in each state that the caller sees: those of the rows of /jobs/jobrun, and waiting for hosts that the run has not reached",
  }),
  scripts: Type.Record(Type.String(), Type.Integer(), {
    description: "Number of scripts of the job in each state, as far as they have begun",
  }),
});
export type JobRunState = Static<typeof JobRunState>;

export const JobBatch = Type.Object({
  jobs: Type.Array(
    Type.Object({
      name: Name,
      param: Type.Optional(Type.String({ description: "JSON text of an object" })),
      timeout: Type.Optional(Type.Integer({ description: "seconds" })),
    }),
    { maxItems: JOB_BATCH_MAX, description: "Jobs to run, side by side. The answer has them in this order" },
  ),
  timeout: Type.Optional(
    Type.Integer({
      description:
        "seconds; 0 or more waits for the output, more than 0 is the most that any of the jobs takes; else the ids of the runs are answered at once",
    }),
  ),
});
export type JobBatch = Static<typeof JobBatch>;

/** Results for the jobs of a batch, in their order. */
export const JobBatchEnds = Type.Array(
  Type.Object({
    name: Type.String({ description: "Name of the job" }),
    runid: Type.Optional(Type.String({ description: "absent when it could not be begun" })),
    status: Type.Union([Type.Literal("ok"), Type.Literal("error")], {
      description: "error: the job could not be begun, or did not end as ok",
    }),
    code: Type.Optional(Type.String({ description: "of an error" })),
    message: Type.String({ description: "the output, the text of an error, or the id of the run" }),
    runs: Type.Optional(Type.Array(JobRunEnd, { description: "End of each run of the job" })),
  }),
);
export type JobBatchEnds = Static<typeof JobBatchEnds>;

export const ContextRead = Type.Object({
  sid: Type.String({ documented: PLAIN_TEXT, description: "Id of the context: values that the parts of a run share" }),
  prefix: Type.Optional(Type.String({ description: "only names that begin so" })),
});

export const ContextWrite = Type.Object({
  sid: Type.String({ documented: PLAIN_TEXT, description: "Id of the context: values that the parts of a run share" }),
  name: Type.String({ documented: PLAIN_TEXT, description: "Name of the value" }),
  value: Type.String({ description: "The value" }),
  ttl: Type.Optional(Type.Integer({ description: "seconds; 0 or absent: for ever", documented: TTL })),
});

export const ContextDelete = Type.Object({
  sid: Type.String({ documented: PLAIN_TEXT, description: "Id of the context: values that the parts of a run share" }),
  name: Type.Optional(Type.String({ documented: PLAIN_TEXT, description: "Name of the value that is removed" })),
  clear: Type.Optional(Type.Boolean({ description: "removes all values" })),
});

export const ContextValues = Type.Record(Type.String(), Type.String());
