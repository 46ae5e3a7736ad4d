import { DAY_SECONDS, POLICY_RUN_MAX_S, POLICY_RUN_TTL_DAYS } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import { columns, textColumns, type SystemClass, type SystemColumn } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { policyStateClass } from "./states/class.ts";
import type { PolicyStates } from "./states/states.ts";
import type { PolicyRecord } from "./types.ts";

/** Path of the class of policies, relative to the tenant's ospace. */
export const POLICY_PATH = "/system/policy";
/** Class with one record for each due run of a command policy. */
export const POLICY_RUN_PATH = "/system/policyrun";
/** Class with a record for each gap: data that is missing, with its amount. */
export const POLICY_GAP_PATH = "/system/policygap";

/** Methods of the policy service that the class of policies uses. */
interface PolicyOwner {
  all(principal: Principal): Promise<readonly PolicyRecord[]>;
  remove(principal: Principal, name: string): Promise<void>;
  readonly states: Pick<PolicyStates, "rows">;
}

export function policyClasses(policies: PolicyOwner): readonly SystemClass[] {
  return [policyClass(policies), RUN_CLASS, GAP_CLASS, policyStateClass(policies.states)];
}

const POLICY_COLUMNS: readonly SystemColumn[] = [
  ...columns("varchar", {
    name: "Name of the policy",
    kind: "command or log",
    rule: "Key of the rule that parses the records",
    status: "deployed or undeployed",
    depotname: "Depot that the command needs; empty: none",
    depotversion: "Version of that depot",
    unit: "Unit of the interval: second, minute, hour, day, month or year",
    differentiator: "Group of match that tells one log from another; empty: none",
    overlap: "skip, queue or replace: what becomes of a run that is due while the former one goes on; empty: skip",
    user: "User of the host who runs the command; empty: the user of the agent",
    creator: "User who made the policy",
  }),
  ...columns("text", {
    command: "Command line; empty for a log policy",
    depotcommand: "Command line that runs once the depot is in place; empty: that of the depot",
    delimiter: "Regular expression that separates records; empty: a line feed",
    dir: "Folder of the log files; empty for a command policy",
    match: "Regular expression of the paths of log files below dir",
    matchregexp: "Regular expression of the records that are sent; empty: all",
  }),
  ...columns("int", {
    ctype: "0: the command runs in the folder of the depot; 1: a plain command",
    interval: "Number of units from one run to the next",
    timeout: `Seconds after which a run is ended; empty: ${POLICY_RUN_MAX_S}`,
    backoff: "Longest pause in seconds after failures; empty: no pause, but of a daemon a minute",
    cpulimit: "Seconds of processor time of each process of the command; empty: no limit",
    nice: "Number that is added to the niceness of the agent; empty: none",
  }),
  ...columns("bigint", {
    outputlimit: "Bytes of the standard output of one run that are kept; empty: all",
    memorylimit: "Bytes of address space of each process of the command; empty: no limit",
  }),
  ...columns("boolean", {
    split: "True: output is cut into records; else a run that is no daemon makes one record",
    delimitereol: "True: the delimiter ends a record, instead of beginning one",
    isdaemon: "True: the command runs for ever, and is restarted when it ends",
  }),
  ...textColumns("list", { priority: "Groups of match that order the files of a log, most significant first" }),
  {
    name: "translation",
    type: "map",
    elements: ["varchar", "text"],
    meaning: "Group of priority to JSON text: numbers by captured text, for the order",
  },
  {
    name: "attrs",
    type: "map",
    elements: ["varchar", "varchar"],
    meaning: "Attributes by name: time_zone, encoding and heading have an effect",
  },
  {
    name: "environment",
    type: "map",
    elements: ["varchar", "text"],
    meaning: "Environment variables of the command, by name",
  },
  ...textColumns("list", {
    hosts: "Hosts on which the policy is to run, as they were sent: names and expressions",
    matched: "Hosts that the entries of hosts mean now; empty: all of them are names",
  }),
  ...textColumns("set", { tags: "Tags of the policy" }),
  ...columns("timestamp", {
    created: "Time at which the policy was made",
    changed: "Time of the last change of the definition; hosts and tags do not count",
  }),
];

/** Reads policies from KvStore, so that MQL shows the same policies that agents get. */
function policyClass(policies: PolicyOwner): SystemClass {
  return {
    path: POLICY_PATH,
    columns: POLICY_COLUMNS,
    keys: ["name"],
    guard: {
      reading: { permission: "policies:read" },
      permission: "policies:write",
      async remove(principal, ids) {
        for (const id of ids) await policies.remove(principal, id.slice(id.indexOf(":") + 1));
        return ids.length;
      },
    },
    async *provide(principal) {
      yield (await policies.all(principal)).map(rowOf);
    },
  };
}

const RUN_CLASS: SystemClass = {
  path: POLICY_RUN_PATH,
  kind: "record",
  columns: [
    ...columns("varchar", {
      policy: "Name of the policy",
      host: "Host on which the command ran",
      state: "ok, failed or interrupted",
    }),
    ...columns("timestamp", {
      scheduled: "Time at which the run was due; of a daemon its start",
      started: "Time at which the command began, by the clock of the host",
      ended: "Time at which the command ended, by the clock of the host",
    }),
    ...columns("int", { code: "Exit code; 128 and the number of a signal that ended it; -1: there is none" }),
    ...columns("text", { message: "Reason of a failure and the end of standard error; empty: neither" }),
    ...columns("bigint", { records: "Number of records that the run sent" }),
  ],
  indexes: ["policy", "host", "state"],
  options: { ttlSeconds: POLICY_RUN_TTL_DAYS * DAY_SECONDS },
  guard: { reading: { permission: "policies:read", isOpenToGroups: true } },
};

const GAP_CLASS: SystemClass = {
  path: POLICY_GAP_PATH,
  kind: "record",
  columns: [
    ...columns("varchar", {
      policy: "Name of the policy; empty if entries of several may be lost",
      host: "Host whose records, runs or entries are missing",
      source: "Path of the file, command, outbox, or the stream of the agent",
      reason:
        "Why: outbox_full, outbox_lost, overrun, backoff, output_limit, truncated, vanished, agent_down, controller_down, clock_jump or lost",
      unit: "What is counted: runs, bytes or entries; unknown: there is no number",
    }),
    ...columns("bigint", { count: "How many are missing at least; 0: the number is not known" }),
    ...columns("timestamp", {
      stime: "Begin of the time in which they went missing",
      etime: "End of the time in which they went missing",
    }),
  ],
  indexes: ["policy", "host", "reason"],
  options: { ttlSeconds: POLICY_RUN_TTL_DAYS * DAY_SECONDS },
  guard: { reading: { permission: "policies:read", isOpenToGroups: true } },
};

/** Converts the map `translation` to texts, because a map column holds texts. Leaves out absent members. */
export function rowOf({ translation, revision: _revision, ...record }: PolicyRecord): Row {
  const row: Record<string, Row[string] | undefined> = { ...record };
  if (translation) {
    row["translation"] = Object.fromEntries(
      Object.entries(translation).map(([group, order]) => [group, JSON.stringify(order)]),
    );
  }
  return Object.fromEntries(
    Object.entries(row).filter((member): member is [string, Row[string]] => member[1] !== undefined),
  );
}
