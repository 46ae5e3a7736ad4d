import { COMMAND_RECORD_TTL_DAYS, DAY_SECONDS } from "../../../common/limits.ts";
import { columns, textColumns, type ColumnSpec, type SystemClass } from "../objects/index.ts";
import { hostGuard, type HostWrites } from "./guard.ts";
import { COMMAND_CLASS, HOST_CLASS, OUTPUT_CLASS } from "./store.ts";

const COMMAND_OPTIONS = { ttlSeconds: COMMAND_RECORD_TTL_DAYS * DAY_SECONDS };

export function hostClasses(hosts: HostWrites): readonly SystemClass[] {
  return [hostClass(hosts), ...COMMAND_CLASSES];
}

function hostClass(hosts: HostWrites): SystemClass {
  return {
    path: HOST_CLASS,
    kind: "entity",
    columns: [
      ...columns("varchar", "host"),
      ...textColumns("list", "iplist"),
      ...columns("varchar", "domain"),
      ...textColumns("set", "hostgroups"),
      ...columns("int", "isagent", "isextagent", "iszabbix"),
      ...columns("varchar", "sert", "sshkey", "status"),
      ...textColumns("set", "tags"),
      ...maps("config", "depot"),
      ...columns("varchar", "agentversion"),
      ...columns("timestamp", "seen"),
      // The agent's state for each policy wanted on the host: `running`, `wanted`, or `failed: ` and the reason.
      ...maps("policies"),
      { name: "secret", type: "text", sealed: true },
      // Members of `config` that are secrets: maps the name to the sealed text.
      ...maps("credentials").map((column) => ({ ...column, sealed: true })),
    ],
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
      ...columns("varchar", "command", "host", "state"),
      ...columns("int", "code", "pid"),
      ...columns("varchar", "signal"),
      ...columns("bigint", "outdropped", "errdropped"),
      ...columns("text", "message"),
      ...columns("timestamp", "started", "ended"),
    ],
    indexes: ["command", "host"],
    options: COMMAND_OPTIONS,
    guard: { reading: { permission: "hosts:read" } },
  },
  {
    path: OUTPUT_CLASS,
    kind: "record",
    columns: [
      ...columns("varchar", "command", "host"),
      ...columns("boolean", "stderr"),
      ...columns("bigint", "offset"),
      ...columns("blob", "data"),
    ],
    indexes: ["command", "host"],
    options: COMMAND_OPTIONS,
    guard: { reading: { permission: "hosts:read" } },
  },
];

function maps(...names: readonly string[]): readonly ColumnSpec[] {
  return names.map((name) => ({ name, type: "map", elements: ["varchar", "text"] }));
}
