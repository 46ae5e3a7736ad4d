import type { MessageOf, OdpClient } from "../../../common/client/index.ts";
import { CLI_LOG_LINES_DEFAULT, CLI_LOG_LINES_MAX, CLI_LOG_PAGES_MAX } from "../../../common/limits.ts";
import { parseTimestamp } from "../../../common/timestamps.ts";
import type { Call } from "../declared/call.ts";
import type { FlagDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { column, type View } from "../formats/columns.ts";
import { untilInterrupted } from "./following.ts";
import { printable, printableJson } from "../formats/printable.ts";

type Page = MessageOf<"getConsolelogRule">;
type Entry = Page["logs"][number];

/** A console log: that of a rule, script or trigger. */
export interface LogName {
  readonly kind: "rule" | "serverjs" | "trigger";
  readonly name: string;
}

const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "panic"] as const;
const VIEW: View = {
  name: "msg",
  columns: [
    column("time", { member: "edtime" }),
    column("level", { of: ({ level }) => LEVELS[level as number] ?? level }),
    column("host"),
    column("source"),
    column("message", { member: "msg" }),
    column("records", { member: "count", isWide: true }),
    column("raw", { isWide: true }),
    column("began", { member: "sttime", isWide: true }),
  ],
};

/** Options of the commands that show a console log. */
export const LOG_FLAGS: readonly FlagDeclaration[] = [
  { name: "follow", short: "f", summary: "write further entries as they come, until Ctrl-C" },
  {
    name: "limit",
    value: "n",
    summary: `how many of the newest, up to ${CLI_LOG_LINES_MAX}`,
    default: String(CLI_LOG_LINES_DEFAULT),
  },
  { name: "since", value: "time", summary: "only from then on: a time, or how long ago, such as 2h; default: 1d" },
  {
    name: "level",
    value: "level",
    summary: "only entries of this level; may be repeated",
    isRepeated: true,
    choices: LEVELS,
  },
];

const CALLS = {
  rule: ["getConsolelogRule", "getConsolelogRuleFollow"],
  serverjs: ["getConsolelogServerjs", "getConsolelogServerjsFollow"],
  trigger: ["getConsolelogTrigger", "getConsolelogTriggerFollow"],
} as const;

interface Selection {
  readonly name: string;
  readonly mintime: number;
  readonly level?: readonly string[];
}

/**
 * Shows the newest entries of a console log, the oldest of them first, and with `--follow` further ones. Returns the exit
 * code.
 */
export async function showLog(call: Call, { kind, name }: LogName): Promise<number | void> {
  const { shell } = call;
  const isFollowed = call.is("follow");
  if (isFollowed && shell.format !== "table" && shell.format !== "json")
    throw new UsageError("--follow writes lines: use it with -o table or -o json.");
  const limit = call.number("limit", { min: 0, max: CLI_LOG_LINES_MAX }) ?? CLI_LOG_LINES_DEFAULT;
  const level = call.list("level");
  const mintime = sinceOf(call);
  const selection: Selection = { name, mintime, ...(level.length > 0 && { level }) };
  const [client, signal] = [await shell.client(), shell.ended()];
  const { logs, position, leftOut } = await newest(client, { id: CALLS[kind][0], selection, limit, signal });
  if (leftOut) shell.note("There are entries that are not shown: choose a later --since.");
  if (!isFollowed) return shell.show(logs, VIEW);
  const line = shell.format === "json" ? printableJson : textOf;
  for (const entry of logs) await shell.write(`${line(entry)}\n`);
  const query = { ...selection, position };
  return untilInterrupted(shell, async () => {
    for await (const { data } of client.events(CALLS[kind][1], { query }, { signal }))
      for (const entry of data.logs) if (!(await shell.write(`${line(entry)}\n`))) return;
  });
}

interface Reading {
  readonly id: (typeof CALLS)[LogName["kind"]][0];
  readonly selection: Selection;
  readonly limit: number;
  readonly signal: AbortSignal;
}

/** Reads up to the present, and keeps the newest entries. `leftOut` if there were too many to read. */
async function newest(
  client: OdpClient,
  { id, selection, limit, signal }: Reading,
): Promise<Page & { readonly leftOut: boolean }> {
  let logs: Page["logs"] = [];
  let position: string | undefined;
  for (let page = 0; page < CLI_LOG_PAGES_MAX; page++) {
    const query = { ...selection, limit: CLI_LOG_LINES_MAX, ...(position !== undefined && { position }) };
    const read: Page = await client.call(id, { query }, { signal });
    logs = [...logs, ...read.logs].slice(limit === 0 ? Infinity : -limit);
    position = read.position;
    if (read.logs.length < CLI_LOG_LINES_MAX) return { logs, position, leftOut: false };
  }
  return { logs, position: position ?? "", leftOut: true };
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function sinceOf(call: Call): number {
  const text = call.optional("since") ?? "1d";
  const [, amount, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const agoMs = Number(amount) * (UNIT_MS[unit ?? ""] ?? Number.NaN);
  const timeMs = Number.isNaN(agoMs) ? parseTimestamp(text) : call.shell.clock.nowMs() - agoMs;
  if (timeMs === undefined)
    throw new UsageError(
      `--since takes a time, such as 2026-01-02T03:04:05Z, or how long ago, such as 2h; not ${text}.`,
    );
  return Math.max(0, timeMs);
}

function textOf({ edtime, level, host, source, msg }: Entry): string {
  const parts = [edtime, (LEVELS[level ?? -1] ?? "").padEnd(5), host, source, msg];
  return printable(parts.filter((part) => part !== undefined && part !== "").join("  "));
}
