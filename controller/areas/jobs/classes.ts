import type { GroupView, JobRecord } from "../../../common/api/jobs.ts";
import { AppError } from "../../../common/errors.ts";
import { DAY_SECONDS, JOB_RUN_TTL_DAYS } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import { columns, TAGS_COLUMN, textColumns, type Edit, type SystemClass } from "../objects/index.ts";
import type { ClassReading, Principal } from "../permissions/index.ts";

/** Relative to the tenant's ospace. */
export const JOB_DEFINITION_PATH = "/jobs/jobdef";
/** Groups of hosts that jobs name. */
export const JOB_GROUP_PATH = "/jobs/jobgroup";
/** One object for each execution and host. */
export const JOB_RUN_PATH = "/jobs/jobrun";
/** One object for each finished command of such a run. */
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

function definitionClass(jobs: JobOwner): SystemClass {
  return {
    path: JOB_DEFINITION_PATH,
    columns: [
      ...columns(
        "varchar",
        "fullname",
        "name",
        "dir",
        "group",
        "groupmode",
        "argenc",
        "schedule",
        "algorithm",
        "queue",
        "creator",
      ),
      ...columns("text", "description", "begin", "end"),
      ...columns("int", "timeout", "limit", "enable", "retry", "retrydelay", "keep", "keepdays"),
      { name: "system", type: "boolean" },
      ...textColumns("list", "host", "exec", "arg", "tag"),
      ...columns("timestamp", "created", "changed"),
    ],
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
      yield (await jobs.all(principal)).map((job): Row => ({ ...job, tags: [...job.tag] }));
    },
  };
}

function editedTags(tags: readonly string[], { column, operation, value }: Edit): readonly string[] {
  if (column !== TAGS_COLUMN) throw new AppError("unsupported", `The column ${column} of jobs is not changed by MQL.`);
  const given = (Array.isArray(value) ? value : value === undefined ? [] : [value]).map(String);
  if (operation === "set") return given;
  return operation === "add" ? [...new Set([...tags, ...given])] : tags.filter((tag) => !given.includes(tag));
}

/** Without the members that are only for the proxies of its hosts. */
export function jobGroupClass(groups: { all(principal: Principal): Promise<readonly GroupView[]> }): SystemClass {
  return {
    path: JOB_GROUP_PATH,
    columns: [...columns("varchar", "gtype", "name"), ...textColumns("list", "hosts")],
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

/** Group rights open runs, but not the output of their commands. */
const RUN_READING: ClassReading = {
  permission: "jobs:read",
  isOpenToGroups: true,
  withheld: ["out", "err"],
};

/** An entity, because it changes once: from running to its final state. */
const RUN_CLASS: SystemClass = {
  path: JOB_RUN_PATH,
  columns: [
    ...columns("varchar", "runid", "host", "name", "dir", "source", "sid", "status", "type", "origin", "signal"),
    ...columns("int", "pid", "code", "tries"),
    ...textColumns("list", "cmds", "params", "failures"),
    ...columns("text", "out", "err", "message"),
    { name: "outputsize", type: "bigint" },
    ...columns("timestamp", "stime", "etime", "deadline", "due"),
  ],
  keys: ["runid", "host"],
  indexes: ["runid", "host", "name", "status", "stime"],
  options: { ttlSeconds: JOB_RUN_TTL_DAYS * DAY_SECONDS },
  guard: { reading: RUN_READING },
};

/** Written when the end of the run is recorded. */
const COMMAND_CLASS: SystemClass = {
  path: COMMAND_RUN_PATH,
  columns: [
    ...columns("varchar", "runid", "host", "name", "dir", "source", "sid", "status", "type", "signal"),
    ...columns("int", "place", "pid", "code"),
    ...columns("text", "cmd", "out", "err", "message"),
    ...columns("timestamp", "stime", "etime"),
  ],
  keys: ["runid", "host", "place"],
  indexes: ["runid", "host", "name", "status", "stime"],
  options: { ttlSeconds: JOB_RUN_TTL_DAYS * DAY_SECONDS },
  guard: { reading: RUN_READING },
};
