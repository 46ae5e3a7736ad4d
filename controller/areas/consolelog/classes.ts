import { CONSOLE_LOG_TTL_DAYS, DAY_SECONDS } from "../../../common/limits.ts";
import type { SystemClass, SystemColumn } from "../objects/index.ts";

export const CONSOLE_LOG_KINDS = ["rule", "serverjs", "trigger"] as const;
export type ConsoleLogKind = (typeof CONSOLE_LOG_KINDS)[number];

const COLUMNS: readonly SystemColumn[] = [
  {
    name: "name",
    type: "varchar",
    title: "Rule, script or trigger",
    meaning: "Key of the rule, path of the script, or class#trigger",
  },
  {
    name: "level",
    type: "int",
    title: "Level",
    meaning: "Level: 0 trace, 1 debug, 2 info, 3 warn, 4 error, 5 fatal, 6 panic",
  },
  { name: "msg", type: "text", title: "Message", meaning: "Text of the entry" },
  {
    name: "sttime",
    type: "timestamp",
    title: "Begin of what this is said of",
    meaning: "Begin of the run that wrote the entry; time of the record that failed",
  },
  { name: "edtime", type: "timestamp", title: "Time", meaning: "Time of the entry" },
];

/** Columns of the log of rules: messages made while parsing, mainly about records that could not be parsed. */
const RULE_COLUMNS: readonly SystemColumn[] = [
  { name: "host", type: "varchar", title: "Host", meaning: "Host that sent the record" },
  {
    name: "source",
    type: "varchar",
    title: "Source",
    meaning: "Path of the file with the record, or command; empty if not known",
  },
  {
    name: "raw",
    type: "text",
    title: "Raw record, as far as it is kept",
    meaning: "Beginning of the record, or of the refused row as JSON; empty for a summary",
  },
  {
    name: "count",
    type: "bigint",
    title: "Records this stands for",
    meaning: "Number of records that the entry is about",
  },
];

/** Path of the class, relative to the ospace. */
export function consoleLogPath(kind: ConsoleLogKind): string {
  return `/consolelog/${kind}`;
}

function classOf(kind: ConsoleLogKind, more: readonly SystemColumn[], indexes: readonly string[]): SystemClass {
  return {
    path: consoleLogPath(kind),
    kind: "record",
    columns: [...COLUMNS, ...more],
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
