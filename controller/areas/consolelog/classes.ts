import { CONSOLE_LOG_TTL_DAYS, DAY_SECONDS } from "../../../common/limits.ts";
import type { ColumnSpec, SystemClass } from "../objects/index.ts";

export const CONSOLE_LOG_KINDS = ["rule", "serverjs", "trigger"] as const;
export type ConsoleLogKind = (typeof CONSOLE_LOG_KINDS)[number];

const COLUMNS: readonly ColumnSpec[] = [
  { name: "name", type: "varchar", title: "Rule, script or trigger" },
  { name: "level", type: "int", title: "Level" },
  { name: "msg", type: "text", title: "Message" },
  { name: "sttime", type: "timestamp", title: "Begin of what this is said of" },
  { name: "edtime", type: "timestamp", title: "Time" },
];

/** Columns of the log of rules: messages made while parsing, mainly about records that could not be parsed. */
const RULE_COLUMNS: readonly ColumnSpec[] = [
  { name: "host", type: "varchar", title: "Host" },
  { name: "source", type: "varchar", title: "Source" },
  { name: "raw", type: "text", title: "Raw record, as far as it is kept" },
  { name: "count", type: "bigint", title: "Records this stands for" },
];

/** Path of the class, relative to the ospace. */
export function consoleLogPath(kind: ConsoleLogKind): string {
  return `/consolelog/${kind}`;
}

function classOf(kind: ConsoleLogKind, columns: readonly ColumnSpec[], indexes: readonly string[]): SystemClass {
  return {
    path: consoleLogPath(kind),
    kind: "record",
    columns: [...COLUMNS, ...columns],
    indexes: ["name", "level", ...indexes],
    options: { ttlSeconds: CONSOLE_LOG_TTL_DAYS * DAY_SECONDS },
    guard: { reading: { permission: "consolelog:read" } },
  };
}

export const CONSOLE_LOG_CLASSES: readonly SystemClass[] = [
  classOf("rule", RULE_COLUMNS, ["host"]),
  classOf("serverjs", [], []),
  classOf("trigger", [], []),
];
