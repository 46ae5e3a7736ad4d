import type { Client } from "../../common/client/client.ts";

/** Ends of a command that are no exit code of its own, as other tools number them: `timeout`, `ssh`, a shell. */
const CODE_OF_STATE: Readonly<Record<string, number>> = {
  timeout: 124,
  expired: 124,
  cancelled: 130,
  unreachable: 255,
};
const FAILED = 1;

export interface ExecOptions {
  readonly client: Pick<Client, "lines">;
  readonly host: string;
  readonly command: readonly string[];
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
  readonly write: (stream: "stdout" | "stderr", data: Uint8Array) => void;
}

interface Piece {
  readonly stream: "stdout" | "stderr";
  readonly data: string;
}

interface HostEnd {
  readonly host: string;
  readonly state: string;
  readonly code?: number;
  readonly message: string;
}

interface End {
  readonly runs: readonly HostEnd[];
  readonly skipped: number;
  readonly message?: string;
}

/** Runs a command on a host, passes on what it writes as it comes, and answers the exit code of the call. */
export async function exec({ client, host, command, timeoutSeconds, signal, write }: ExecOptions): Promise<number> {
  const param = JSON.stringify({ cmd: lineOf(command), "HOST!": host, timeout: timeoutSeconds });
  const query = { param, stream: "true", timeout: String(timeoutSeconds) };
  let end: End | undefined;
  for await (const line of client.lines("GET", "/job/remote_command@system/common", { query, signal })) {
    if (isEnd(line)) end = line;
    else if (isPiece(line)) write(line.stream, Buffer.from(line.data, "base64"));
  }
  const told = end === undefined ? ["The answer broke off before the end of the command."] : notesOf(end);
  for (const note of told) write("stderr", Buffer.from(`odp: ${note}\n`));
  return end === undefined ? FAILED : exitCodeOf(end.runs);
}

/** One argument is a line for the host's shell; of several each is passed on as it was typed. */
export function lineOf(command: readonly string[]): string {
  const [only] = command;
  return command.length === 1 && only !== undefined ? only : command.map(quoted).join(" ");
}

/** The worst of all hosts. */
export function exitCodeOf(runs: readonly HostEnd[]): number {
  return runs.length === 0
    ? FAILED
    : Math.max(...runs.map(({ state, code }) => (state === "ok" ? 0 : (CODE_OF_STATE[state] ?? (code || FAILED)))));
}

function quoted(argument: string): string {
  return /^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}

/** What is neither output nor an exit code. */
function notesOf({ runs, skipped, message }: End): readonly string[] {
  return [
    ...(message === undefined ? [] : [message]),
    ...runs.flatMap(({ host, state, code, message: why }) =>
      state === "ok" || (state === "failed" && code !== undefined) ? [] : [`${host}: ${state}: ${why}`],
    ),
    ...(skipped > 0 ? [`${skipped} bytes of output were left out: they came faster than they were read.`] : []),
  ];
}

function isEnd(line: unknown): line is End {
  return typeof line === "object" && line !== null && "runs" in line;
}

function isPiece(line: unknown): line is Piece {
  return typeof line === "object" && line !== null && "data" in line && "stream" in line;
}
