import type { GroupView } from "../../../common/api/job-groups.ts";
import type { JobRecord } from "../../../common/api/jobs.ts";
import { AppError } from "../../../common/errors.ts";
import { DAY_SECONDS, JOB_DEFAULT_S, JOB_RUN_TTL_DAYS } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import { columns, TAGS_COLUMN, textColumns, type Edit, type SystemClass, type SystemColumn } from "../objects/index.ts";
import type { ClassReading, Principal } from "../permissions/index.ts";

/** Path of the class of job definitions, relative to the tenant's ospace. */
export const JOB_DEFINITION_PATH = "/jobs/jobdef";
/** Groups of hosts that jobs name. */
export const JOB_GROUP_PATH = "/jobs/jobgroup";
/** One object for each execution and host. */
export const JOB_RUN_PATH = "/jobs/jobrun";
/** One object for each finished command of a run. */
export const COMMAND_RUN_PATH = "/jobs/cmdrun";

/** The part of the job service that the class of definitions needs. */
interface JobOwner {
  all(principal: Principal): Promise<readonly JobRecord[]>;
  remove(principal: Principal, fullName: string): Promise<void>;
  retag(principal: Principal, fullName: string, change: (tags: readonly string[]) => readonly string[]): Promise<void>;
}

export function jobClasses(jobs: JobOwner): readonly SystemClass[] {
  return [definitionClass(jobs), RUN_CLASS, COMMAND_CLASS];
}

const DEFINITION_COLUMNS: readonly SystemColumn[] = [
  ...columns("varchar", {
    fullname: "Name and folder of the job: name@dir",
    name: "Name of the job in its folder",
    dir: "Folder of the job",
    group: "Groups of hosts on which it runs, separated by commas",
    groupmode: "parallel or empty: side by side; sequence: one after another; one: one host",
    argenc: "Encoding of commands and their output on the hosts; empty: UTF-8",
    user: "User of the hosts who runs the commands; empty: that of the agent or the login",
    schedule: "Schedule, as cron, every or at, with its options; empty: none",
    algorithm: "Order of hosts for groupmode one; empty: that of the definition",
    queue: "Queue whose jobs run one after another; empty: none",
    creator: "User who made the job",
  }),
  ...columns("text", {
    description: "Description by the author",
    begin: "Script that runs before the first host; empty: none",
    end: "Script that runs after the last host; empty: none",
  }),
  ...columns("int", {
    timeout: `Seconds that a try may take, unless its caller says; 0 or less: ${JOB_DEFAULT_S}`,
    limit: "Most executions at once, on all controllers together; 0 or less: no limit",
    enable: "1: the schedule is on; 0: it is off",
    retry: "How often a host that failed is tried again",
    retrydelay: "Seconds before a host is tried again",
    keep: "Most runs that are kept, the newest; 0: all",
    keepdays: `Days for which runs are kept; 0: ${JOB_RUN_TTL_DAYS}`,
  }),
  ...columns("boolean", { system: "True if the job belongs to the platform" }),
  ...textColumns("list", {
    host: "Hosts on which it runs, besides those of its groups",
    exec: "Command lines, run one after another until one fails",
    arg: "Words that are appended to each command line, quoted",
    tag: "Tags of the job",
  }),
  ...columns("timestamp", {
    created: "Time at which the job was made",
    changed: "Time of the last change of the definition",
  }),
];

function definitionClass(jobs: JobOwner): SystemClass {
  return {
    path: JOB_DEFINITION_PATH,
    columns: DEFINITION_COLUMNS,
    keys: ["fullname"],
    guard: {
      reading: { permission: "jobs:read" },
      permission: "jobs:write",
      async remove(principal, ids) {
        for (const id of ids) await jobs.remove(principal, id.slice(id.indexOf(":") + 1));
        return ids.length;
      },
      async update(principal, id, edits) {
        await jobs.retag(principal, id.slice(id.indexOf(":") + 1), (tags) => edits.reduce(editedTags, tags));
        return true;
      },
    },
    async *provide(principal) {
      yield (await jobs.all(principal)).map(({ revision: _revision, ...job }): Row => ({ ...job, tags: [...job.tag] }));
    },
  };
}

function editedTags(tags: readonly string[], { column, operation, value }: Edit): readonly string[] {
  if (column !== TAGS_COLUMN) throw new AppError("unsupported", `The column ${column} of jobs is not changed by MQL.`);
  const given = (Array.isArray(value) ? value : value === undefined ? [] : [value]).map(String);
  if (operation === "set") return given;
  return operation === "add" ? [...new Set([...tags, ...given])] : tags.filter((tag) => !given.includes(tag));
}

/** The class of groups of hosts. It has no columns for the data by which hosts behind a proxy are reached. */
export function jobGroupClass(groups: { all(principal: Principal): Promise<readonly GroupView[]> }): SystemClass {
  return {
    path: JOB_GROUP_PATH,
    columns: [
      ...columns("varchar", {
        gtype: "Type of the group: group, or proxy if hosts of it are behind another one",
        name: "Name of the group",
      }),
      ...textColumns("list", { hosts: "Names or addresses of its hosts" }),
    ],
    keys: ["gtype", "name"],
    guard: { reading: { permission: "jobs:read" } },
    async *provide(principal) {
      yield (await groups.all(principal)).map((group) => groupRow(principal, group));
    },
  };
}

/** A group as a row for MQL. */
export function groupRow(
  { ospace }: Principal,
  { gtype, name, hosts }: Pick<GroupView, "gtype" | "name"> & { readonly hosts: readonly { readonly host: string }[] },
): Row & { readonly id: string } {
  const names = hosts.map(({ host }) => host);
  return { id: `jobgroup:${gtype}/${name}`, class: ospace + JOB_GROUP_PATH, gtype, name, hosts: names };
}

/** Groups can give the right to see runs, but not the output of their commands. */
const RUN_READING: ClassReading = {
  permission: "jobs:read",
  isOpenToGroups: true,
  withheld: ["out", "err"],
};

/** Titles that the rows of runs and of their commands have in common. */
const RUN_TITLES = {
  runid: "Id of the execution, the same on all hosts",
  host: "Host; -begin, -end or -serverjs: a script of the job; -: no host was given the run",
  name: "Full name of the job: name@dir",
  dir: "Folder of the job",
  source: "User who asked for the run, or with whose rights the schedule runs",
  sid: "Id of the context of the run, in which its commands keep values",
};
const SIGNAL_TITLE = "Name of the signal that ended the command, such as SIGKILL; empty: none is known";

/** The objects change once, from `running` to the final state. So this is not a class of records. */
const RUN_CLASS: SystemClass = {
  path: JOB_RUN_PATH,
  columns: [
    ...columns("varchar", {
      ...RUN_TITLES,
      status: "running, ok, failed, timeout, unreachable, cancelled, expired or skipped",
      type: "job, or begin, end or serverjs for a script",
      origin: "Id of the run whose failed hosts this one tries again; empty: none",
      signal: SIGNAL_TITLE,
    }),
    ...columns("int", {
      pid: "Number of the last command's process on its host; empty: not known, or none",
      code: "Exit code of the last command; empty while it goes on, or if there is none",
      tries: "Number of tries; empty: one or none",
    }),
    ...textColumns("list", {
      cmds: "Command lines with their arguments",
      params: "Names of the parameters that the caller gave",
      failures: "How the tries before the last one ended, in order",
    }),
    ...columns("text", {
      out: "First part of the standard output of the last try",
      err: "First part of the standard error of the last try",
      message: "Reason of a failure, a note, or why the run was left out; empty: none",
    }),
    ...columns("bigint", { outputsize: "Bytes of output of all tries, also those that were not kept" }),
    ...columns("timestamp", {
      stime: "Time at which the run began",
      etime: "Time at which the run ended; empty while it goes on",
      deadline: "Time by which the run has to end, all tries and pauses included",
      due: "Time at which the schedule was due; empty: a caller asked for the run",
    }),
  ],
  keys: ["runid", "host"],
  indexes: ["runid", "host", "name", "status", "stime"],
  options: { ttlSeconds: JOB_RUN_TTL_DAYS * DAY_SECONDS },
  guard: { reading: RUN_READING },
};

/** A row is written when the end of its run is recorded. */
const COMMAND_CLASS: SystemClass = {
  path: COMMAND_RUN_PATH,
  columns: [
    ...columns("varchar", {
      ...RUN_TITLES,
      status: "ok, failed, timeout, unreachable, cancelled or expired",
      type: "Always cmd",
      signal: SIGNAL_TITLE,
    }),
    ...columns("int", {
      place: "Place of the command among those of the run, from 1",
      pid: "Number of the process on its host; empty: not known, or none",
      code: "Exit code of the command; empty if there is none",
    }),
    ...columns("text", {
      cmd: "Command line with its arguments",
      out: "Its part of the standard output that the run keeps",
      err: "Its part of the standard error that the run keeps",
      message: "Reason of a failure, or a note; empty: neither",
    }),
    ...columns("timestamp", {
      stime: "Time at which the command began",
      etime: "Time at which the command ended",
    }),
  ],
  keys: ["runid", "host", "place"],
  indexes: ["runid", "host", "name", "status", "stime"],
  options: { ttlSeconds: JOB_RUN_TTL_DAYS * DAY_SECONDS },
  guard: { reading: RUN_READING },
};
