import { CONSOLE_LOG_TTL_DAYS, DAY_SECONDS } from "../../../common/limits.ts";
import { columns, type SystemClass, type SystemColumn } from "../objects/index.ts";

export const CONSOLE_LOG_KINDS = ["rule", "serverjs", "trigger"] as const;
export type ConsoleLogKind = (typeof CONSOLE_LOG_KINDS)[number];

const COLUMNS: readonly SystemColumn[] = [
  ...columns("varchar", { name: "Key of the rule, path of the script, or class#trigger" }),
  ...columns("int", { level: "Level: 0 trace, 1 debug, 2 info, 3 warn, 4 error, 5 fatal, 6 panic" }),
  ...columns("text", { msg: "Text of the entry" }),
  ...columns("timestamp", {
    sttime: "Begin of the run that wrote the entry; time of the record that failed",
    edtime: "Time of the entry",
  }),
];

/** Columns of the log of rules: messages made while parsing, mainly about records that could not be parsed. */
const RULE_COLUMNS: readonly SystemColumn[] = [
  ...columns("varchar", {
    host: "Host that sent the record",
    source: "Path of the file with the record, or command; empty if not known",
  }),
  ...columns("text", { raw: "Beginning of the record, or of the refused row as JSON; empty for a summary" }),
  ...columns("bigint", { count: "Number of records that the entry is about" }),
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
