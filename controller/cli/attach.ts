import type { JobRecord } from "../../common/api/jobs.ts";
import type { OdpClient } from "../../common/client/index.ts";
import { mapLimited } from "../../common/concurrency.ts";
import { isAppError } from "../../common/errors.ts";
import {
  CLI_FOLLOWED_HOSTS_MAX,
  CLI_RUN_HOSTS_MAX,
  CLI_RUN_POLL_MS,
  CLI_RUN_POLLS_SETTLED,
} from "../../common/limits.ts";
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
  /** True: the run exists, so hosts are waited for, as while it is in a queue. */
  readonly isKnown: boolean;
}

/** Row of a run on one host. */
interface RunRow {
  readonly host: string;
  readonly job: string;
  readonly isScheduled: boolean;
}

/**
 * Follows a run on all its hosts until it is over, and returns the exit code: the worst of its hosts. Returns
 * `undefined` if there is no such run. A run that may begin on further hosts later, as one with scripts does, counts as
 * over if no further host comes within some looks at its rows.
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
  const { clock, signal, isKnown } = options;
  for (let vain = 0; vain < CLI_RUN_POLLS_SETTLED; ) {
    const rows = await rowsOf(options);
    const [first] = rows;
    if (first === undefined && !isKnown) return false;
    const further = rows.filter(({ host }) => !ends.has(host));
    const ended = await mapLimited(further, CLI_FOLLOWED_HOSTS_MAX, ({ host }) => followHost(host, add, options));
    for (const end of ended) ends.set(end.host, end);
    if (first !== undefined && !(await mayBeginFurther(first, options))) return true;
    vain = further.length > 0 || first === undefined ? 0 : vain + 1;
    await wait(clock, CLI_RUN_POLL_MS, signal);
  }
  return true;
}

type Add = (host: string, data: Buffer) => void;

/** Rows of the hosts on which the run has begun, by name. */
async function rowsOf({ client, runId, runClass, signal }: AttachOptions): Promise<readonly RunRow[]> {
  const mql = `select host, name, due from ${runClass} where runid = ? order by host limit ${CLI_RUN_HOSTS_MAX}`;
  const rows: RunRow[] = [];
  const body = { mql, values: [runId] };
  for await (const { message } of client.pages("postMxobjectMql", { body }, { signal, isRepeatable: true }))
    for (const { host, name, due } of message)
      rows.push({ host: String(host), job: String(name), isScheduled: typeof due === "number" });
  return rows;
}

/** True if the run may begin on further hosts, or run a script. Other runs begin on all their hosts at once. */
export async function mayBeginFurther(
  { job, isScheduled }: Pick<RunRow, "job" | "isScheduled">,
  { client, signal }: Pick<AttachOptions, "signal"> & { readonly client: Pick<OdpClient, "call"> },
): Promise<boolean> {
  if (isScheduled) return true;
  try {
    const found = (await client.call("getJobByPath", { path: { path: job } }, { signal })) as JobRecord;
    return [found.begin, found.end, found.queue].some((text) => text !== "") || found.groupmode === "one";
  } catch (error) {
    // The job was removed or is not visible, so nothing is known of it.
    if (isAppError(error, "not_found", "denied")) return true;
    throw error;
  }
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
