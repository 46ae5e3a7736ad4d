import type { JobRunState } from "../../common/api/jobs.ts";
import type { OdpClient } from "../../common/client/index.ts";
import { mapLimited } from "../../common/concurrency.ts";
import { isAppError } from "../../common/errors.ts";
import { CLI_FOLLOWED_HOSTS_MAX, CLI_RUN_HOSTS_MAX, CLI_RUN_POLL_MS } from "../../common/limits.ts";
import { wait, type Clock } from "../../common/time.ts";
import { printableLines } from "./formats/printable.ts";
import { HostLines, type Write } from "./host-lines.ts";
import { exitCodeOf, recapOf, type HostEnd } from "./run-ends.ts";

export interface AttachOptions {
  readonly client: Pick<OdpClient, "call" | "events" | "pages">;
  readonly clock: Clock;
  readonly runId: string;
  /** Path of the class of runs. */
  readonly runClass: string;
  /** The output from so many lines before its present end on; absent: all. */
  readonly lines?: number | undefined;
  /** Output without the host in front of each line. */
  readonly raw?: boolean;
  readonly signal: AbortSignal;
  readonly write: Write;
}

/**
 * Follows a run on all its hosts until it is over, and returns the exit code: the worst of its hosts. Returns
 * `undefined` if there is no such run.
 */
export async function attach(options: AttachOptions): Promise<number | undefined> {
  const { write, raw } = options;
  const lines = new HostLines(write);
  const add: Add = (host, data) => (raw === true ? write("stdout", data) : lines.add(host, "stdout", data));
  const ends = new Map<string, HostEnd>();
  try {
    if (!(await followAll(options, add, ends))) return undefined;
  } finally {
    lines.end();
  }
  const runs = [...ends.values()];
  for (const note of recapOf(runs)) write("stderr", Buffer.from(`odp: ${printableLines(note)}\n`));
  return exitCodeOf(runs);
}

/** Returns false if there is no such run. */
async function followAll(options: AttachOptions, add: Add, ends: Map<string, HostEnd>): Promise<boolean> {
  const { clock, signal } = options;
  for (;;) {
    // Asked before the rows: those of a run that has ended are all there.
    const state = await stateOf(options);
    if (state === undefined) return false;
    const further = (await hostsOf(options)).filter((host) => !ends.has(host));
    const ended = await mapLimited(further, CLI_FOLLOWED_HOSTS_MAX, (host) => followHost(host, add, options));
    for (const end of ended) ends.set(end.host, end);
    if (state === "ended") return true;
    if (further.length === 0) await wait(clock, CLI_RUN_POLL_MS, signal);
    signal.throwIfAborted();
  }
}

type Add = (host: string, data: Buffer) => void;

/** State of the whole run; `undefined`: there is no such run. */
async function stateOf({ client, runId, signal }: AttachOptions): Promise<JobRunState["state"] | undefined> {
  try {
    const { state } = await client.call("getJobRunByRunid", { path: { runid: runId } }, { signal });
    return state;
  } catch (error) {
    if (isAppError(error, "not_found")) return undefined;
    throw error;
  }
}

/** Names of the hosts on which the run has begun. */
async function hostsOf({ client, runId, runClass, signal }: AttachOptions): Promise<readonly string[]> {
  const mql = `select host from ${runClass} where runid = ? order by host limit ${CLI_RUN_HOSTS_MAX}`;
  const hosts: string[] = [];
  const body = { mql, values: [runId] };
  for await (const { message } of client.pages("postMxobjectMql", { body }, { signal, isRepeatable: true }))
    for (const { host } of message) hosts.push(String(host));
  return hosts;
}

/** Passes on the output of one host until the run is over there. */
async function followHost(
  host: string,
  add: Add,
  { client, runId: runid, lines, signal }: AttachOptions,
): Promise<HostEnd> {
  const query = lines === undefined ? {} : { lines };
  for await (const { data } of client.events(
    "getJobOutputByRunidByHost",
    { path: { runid, host }, query },
    { signal },
  )) {
    if (data.data !== undefined) add(host, Buffer.from(data.data, "base64"));
    if (data.end !== undefined) return { host, ...data.end };
  }
  return { host, state: "failed", message: "The controller did not tell how the run ended." };
}
