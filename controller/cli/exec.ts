import type { OdpClient, RequestOf } from "../../common/client/index.ts";
import { errorText } from "../../common/errors.ts";
import { CLI_QUERY_MAX_CHARACTERS, CLIENT_WAIT_MAX_MS } from "../../common/limits.ts";
import { printableLines } from "./formats/printable.ts";
import { HostLines, type Stream, type Write } from "./host-lines.ts";
import { exitCodeOf, FAILED, failuresOf, recapOf, type HostEnd } from "./run-ends.ts";

/** A command may be silent for as long as it runs, and its user may leave it at any time. */
const SILENCE_MS = CLIENT_WAIT_MAX_MS;

export interface FollowOptions {
  readonly client: Pick<OdpClient, "lines" | "call">;
  /** Cancels the run, whose end is waited for. */
  readonly cancel: AbortSignal;
  /** Waits no longer. */
  readonly leave: AbortSignal;
  readonly write: Write;
}

export interface ExecOptions extends FollowOptions {
  /** A name, names with commas between, or an expression. */
  readonly host: string;
  readonly command: readonly string[];
  readonly timeoutSeconds: number;
  /** Standard input of the command; absent: it is empty. */
  readonly input?: Uint8Array | undefined;
}

export interface RunOptions extends FollowOptions {
  /** `<name>@<dir>` */
  readonly job: string;
  /** JSON text of an object. */
  readonly param?: string;
  /** In the place of those of the job. */
  readonly hosts?: readonly string[];
  /** Timeout of each try; absent: that of the job. */
  readonly timeoutSeconds?: number;
  /** Output as it comes, without the host in front of each line. */
  readonly raw?: boolean;
}

/** Takes a piece of output of a host. */
interface Shown {
  readonly add: (host: string, stream: Stream, data: Buffer) => void;
  readonly end: () => void;
}

interface Piece {
  readonly host: string;
  readonly stream: Stream;
  readonly data: string;
}

interface End {
  readonly runs: readonly HostEnd[];
  readonly skipped: number;
  readonly message?: string;
}

/**
 * Runs a command on a host, passes on what it writes as it comes, and answers the exit code of the call. On hosts of a
 * list or of an expression, each line is behind the name of its host, and a recap follows.
 */
export async function exec({ host, command, timeoutSeconds, input, ...following }: ExecOptions): Promise<number> {
  // Loaded when needed, as it brings the parser of MQL: other commands start faster.
  const { isExpression } = await import("../../common/targets/index.ts");
  const isOne = !host.includes(",") && !isExpression(host);
  const param = JSON.stringify({
    cmd: lineOf(command),
    // One text would be cut at the commas of a condition.
    "HOST!": isExpression(host) ? [host] : host,
    timeout: timeoutSeconds,
    ...(input && { "STDIN!": { base64: Buffer.from(input).toString("base64") } }),
  });
  const asked = { param, timeout: timeoutSeconds };
  const shown = isOne ? asItComes(following.write) : new HostLines(following.write);
  const hasInput = input !== undefined;
  return follow("remote_command@system/common", asked, { ...following, shown, hasInput, isRecapped: !isOne });
}

/** Runs a job, passes on what its hosts write, line by line, and answers the exit code of the call. */
export function runJob({ job, param, hosts, timeoutSeconds, raw, ...following }: RunOptions): Promise<number> {
  const given: unknown = param === undefined ? {} : JSON.parse(param);
  const members = { ...(given as object), ...(hosts && { "HOST!": hosts }) };
  const query = {
    param: JSON.stringify(members),
    ...(timeoutSeconds !== undefined && { timeout: timeoutSeconds }),
  };
  const shown = raw === true ? asItComes(following.write) : new HostLines(following.write);
  return follow(job, query, { ...following, shown, isRecapped: true });
}

function asItComes(write: Write): Shown {
  return { add: (_host, stream, data) => write(stream, data), end: () => undefined };
}

interface Following extends FollowOptions {
  readonly shown: Shown;
  /** True: tells the id of the run, how it ended on each host, and on how many. */
  readonly isRecapped?: boolean;
  /** True: what is asked has content, which belongs in no URL. */
  readonly hasInput?: boolean;
}

async function follow(
  job: string,
  asked: RequestOf<"getJobByPath">["query"] & object,
  { client, cancel, leave, write, shown, isRecapped = false, hasInput = false }: Following,
): Promise<number> {
  const tell = (note: string): void => write("stderr", Buffer.from(`odp: ${printableLines(note)}\n`));
  const path = { path: job };
  const options = { signal: leave, silenceMs: SILENCE_MS };
  const lines =
    hasInput || isLong(asked.param)
      ? client.lines("postJobExecByPath", { path, body: asked }, options)
      : client.lines("getJobByPath", { path, query: asked }, options);
  let end: End | undefined;
  let stop = (): void => undefined;
  try {
    for await (const line of lines) {
      if (isEnd(line)) end = line;
      else if (isPiece(line)) shown.add(line.host, line.stream, Buffer.from(line.data, "base64"));
      else if (isBegun(line)) {
        stop = cancelling(line.runid, { client, cancel, tell });
        if (isRecapped) tell(`run ${line.runid}`);
      }
    }
  } finally {
    stop();
    shown.end();
  }
  const told = end === undefined ? ["The answer broke off before the end of the command."] : notesOf(end, isRecapped);
  told.forEach(tell);
  return end === undefined ? FAILED : exitCodeOf(end.runs);
}

/** True for parameters of a run that may be too long for a URL. */
export function isLong(param: string | undefined): boolean {
  return encodeURIComponent(param ?? "").length > CLI_QUERY_MAX_CHARACTERS;
}

/** Cancels the run when the signal fires, or has. */
function cancelling(
  runId: string,
  { client, cancel, tell }: Pick<FollowOptions, "client" | "cancel"> & { readonly tell: (note: string) => void },
): () => void {
  const ask = (): void => {
    client
      .call("postJobCancelByRunid", { path: { runid: runId } })
      .catch((error: unknown) => tell(`the run ${runId} could not be cancelled: ${errorText(error)}`));
  };
  if (cancel.aborted) ask();
  else cancel.addEventListener("abort", ask, { once: true });
  return () => cancel.removeEventListener("abort", ask);
}

/** One argument is a line for the host's shell; of several each is passed on as it was typed. A first `--` is none. */
export function lineOf(words: readonly string[]): string {
  const command = words[0] === "--" ? words.slice(1) : words;
  const [only] = command;
  return command.length === 1 && only !== undefined ? only : command.map(quoted).join(" ");
}

function quoted(argument: string): string {
  return /^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}

/** Messages of the end that are neither output nor an exit code. */
function notesOf({ runs, skipped, message }: End, isRecapped: boolean): readonly string[] {
  return [
    ...(message === undefined ? [] : [message]),
    ...(skipped > 0 ? [`${skipped} bytes of output were left out: they came faster than they were read.`] : []),
    ...(isRecapped ? recapOf(runs) : failuresOf(runs)),
  ];
}

function isEnd(line: unknown): line is End {
  return typeof line === "object" && line !== null && "runs" in line;
}

function isBegun(line: unknown): line is { readonly runid: string } {
  return typeof line === "object" && line !== null && "runid" in line && !("runs" in line);
}

function isPiece(line: unknown): line is Piece {
  return typeof line === "object" && line !== null && "host" in line && "data" in line && "stream" in line;
}
