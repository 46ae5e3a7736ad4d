import { COMMAND_RECORD_TTL_DAYS, DAY_SECONDS } from "../../../common/limits.ts";
import { columns, textColumns, type SystemClass, type SystemColumn } from "../objects/index.ts";
import { hostGuard, type HostWrites } from "./guard.ts";
import { COMMAND_CLASS, HOST_CLASS, OUTPUT_CLASS, STAMP_COLUMN } from "./store.ts";

const MAP = { type: "map", elements: ["varchar", "text"] } as const;
const COMMAND_OPTIONS = { ttlSeconds: COMMAND_RECORD_TTL_DAYS * DAY_SECONDS };

export function hostClasses(hosts: HostWrites): readonly SystemClass[] {
  return [hostClass(hosts), ...COMMAND_CLASSES];
}

const HOST_COLUMNS: readonly SystemColumn[] = [
  ...columns("varchar", { host: "Name of the host, unique in the tenant" }),
  ...textColumns("list", { iplist: "Addresses of the host, as users or its agent gave them" }),
  ...columns("varchar", { domain: "Domain of the host, as users set it" }),
  ...textColumns("set", { hostgroups: "Groups that users put the host in; not the groups of hosts of jobs" }),
  ...columns("int", {
    isagent: "1 for a host whose agent enrolled, or as users set it; 0 or empty otherwise",
    isextagent: "1 if the host is for an external agent, as users set it; 0 or empty otherwise",
    iszabbix: "1 means the same as 1 of isextagent, as users set it; 0 or empty otherwise",
  }),
  ...columns("varchar", {
    sert: "Text kept for clients as they set sert; without effect",
    sshkey: "SHA-256 fingerprint of the key that the host shows over SSH; empty: not known",
    status: "online while the agent has a session, then offline; empty: it never had one",
  }),
  ...textColumns("set", { tags: "Tags of the host" }),
  ...maps({
    config: "Settings that users gave the host and facts that its agent told, by name",
    depot: "Depots on the host: the versions of each as JSON text, by name",
    depottimes: "Time since which each depot has its version on the host, as milliseconds since 1970",
  }),
  ...columns("varchar", { agentversion: "Version of the agent that had a session last; empty: none had" }),
  ...columns("timestamp", {
    seen: "Time at which the agent last told facts; empty: never",
    statustime: "Time since which the host has its status; empty: it never had one",
  }),
  ...maps({
    policies: "State of each policy wanted on the host: running, wanted, or failed and why",
    policytimes: "Time since which each policy has its state, as milliseconds since 1970",
    usage:
      "Usage that the agent read of the processes of daemons, by policy/<name>, and of external agents, by extagent, as JSON: cpu in percent of one processor, memory in bytes, processes",
    confs: "SHA-256 of the conf that the agent has in place, by policy",
  }),
  { name: "secret", type: "text", sealed: true },
  // Members of `config` that are secrets: maps the name to the sealed text.
  { name: "credentials", ...MAP, sealed: true },
  { name: STAMP_COLUMN, type: "text", sealed: true },
];

function hostClass(hosts: HostWrites): SystemClass {
  return {
    path: HOST_CLASS,
    kind: "entity",
    columns: HOST_COLUMNS,
    keys: ["host"],
    indexes: ["tags", "hostgroups", "status"],
    options: { keyMode: "manu", autosearch: true },
    guard: hostGuard(hosts),
  };
}

/** Results and output of commands. Output is stored in pieces; `offset` counts the bytes of both streams together. */
export const COMMAND_CLASSES: readonly SystemClass[] = [
  {
    path: COMMAND_CLASS,
    kind: "record",
    columns: [
      ...columns("varchar", {
        command: "Id of the command",
        host: "Host that the command was given to",
        state: "ok, failed, timeout, cancelled, expired or interrupted",
      }),
      ...columns("int", {
        code: "Exit code; 128 and the number of a signal that ended it; -1: there is none",
        pid: "Number of the process on its host; empty: none was started, or it is not known",
      }),
      ...columns("varchar", { signal: "Name of the signal that ended the process, such as SIGKILL; empty: none did" }),
      ...columns("bigint", {
        outdropped: "Bytes of standard output that the host did not send, as there were too many",
        errdropped: "Bytes of standard error that the host did not send, as there were too many",
      }),
      ...columns("text", { message: "Reason or note that the agent gave; empty: none" }),
      ...columns("timestamp", {
        started: "Time at which the command began, by the clock of the host",
        ended: "Time at which the command ended, by the clock of the host",
      }),
    ],
    indexes: ["command", "host"],
    options: COMMAND_OPTIONS,
    guard: { reading: { permission: "hosts:read" } },
  },
  {
    path: OUTPUT_CLASS,
    kind: "record",
    columns: [
      ...columns("varchar", { command: "Id of the command", host: "Host on which the command ran" }),
      ...columns("boolean", { stderr: "True for standard error, false for standard output" }),
      ...columns("bigint", { offset: "Bytes of the command's output before this piece, both streams together" }),
      ...columns("blob", { data: "Bytes of this piece, as base64" }),
    ],
    indexes: ["command", "host"],
    options: COMMAND_OPTIONS,
    guard: { reading: { permission: "hosts:read" } },
  },
];

function maps(meanings: Readonly<Record<string, string>>): readonly SystemColumn[] {
  return Object.entries(meanings).map(([name, meaning]) => ({ name, ...MAP, meaning }));
}
