import type { OdpClient } from "../../../common/client/index.ts";
import { AppError } from "../../../common/errors.ts";
import { CLI_COMPLETED_RUNS_MAX, CLI_RUNS_MAX } from "../../../common/limits.ts";
import { attach } from "../attach.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import type { Shell } from "../declared/shell.ts";
import { UsageError } from "../declared/usage.ts";
import { CANCELLED } from "../failure.ts";
import { column, type View } from "../formats/columns.ts";
import { jsonIn } from "./raw.ts";
import { JOB } from "./words.ts";

/** Exit codes of the commands that end as a run did, besides the exit code of its command. */
export const RUN_CODES = {
  124: "no end in time",
  130: "cancelled",
  255: "a host was not reached",
};
/** States of runs and, as `skipped`, of due times without a run. */
const STATUSES = ["running", "ok", "failed", "timeout", "unreachable", "cancelled", "expired", "skipped"];
const RUNS: View = {
  name: "runid",
  columns: [
    column("run", { member: "runid", isWhole: true }),
    column("job", { member: "name" }),
    column("host"),
    column("status"),
    column("code"),
    column("began", { member: "stime", isTime: true, isNear: true }),
    column("ended", { member: "etime", isTime: true }),
    column("by", { member: "source" }),
    column("message"),
    column("due", { isTime: true, isWide: true }),
    column("signal", { isWide: true }),
    column("tries", { isWide: true }),
  ],
};
const RUN = { name: "runid", summary: "id of the run, as odp job runs shows it", completes: "runs" } as const;

/** Commands of `odp job` about runs. */
export const RUN_COMMANDS: readonly CommandDeclaration[] = [
  {
    name: "runs",
    isReading: true,
    summary: "list the newest runs, of one job or of all",
    arguments: [{ ...JOB, isOptional: true }],
    flags: [
      { name: "host", value: "host", summary: "only there", completes: "hosts" },
      { name: "status", value: "status", summary: "only those in this state", choices: STATUSES },
      { name: "limit", value: "n", summary: `how many, up to ${CLI_RUNS_MAX}`, default: "20" },
    ],
    run: runs,
  },
  {
    name: "attach",
    summary: "follow a run until it is over: its output so far, what comes, and how each host ended",
    details:
      "Each line is behind the name of its host; standard output and error are one. Ctrl-C leaves the run going. The output of a run that is over is shown as well.",
    arguments: [RUN],
    flags: [
      { name: "tail", value: "n", summary: "of the output so far, only the last lines of each host" },
      { name: "raw", summary: "the output as it comes, without the names of hosts" },
    ],
    exitCodes: RUN_CODES,
    run: attachTo,
  },
  {
    name: "cancel",
    summary: "cancel a run; answers whether it was not over yet",
    arguments: [RUN],
    flags: [{ name: "host", value: "host", summary: "only there", completes: "hosts" }],
    run: cancel,
  },
  {
    name: "retry",
    summary: "run the job again on the hosts on which that run failed; answers the id of the new run",
    arguments: [RUN],
    flags: [{ name: "param", value: "json", summary: "a JSON object: what that run was given, which is not kept" }],
    run: retry,
  },
];

async function runs(call: Call): Promise<void> {
  const { shell } = call;
  const [client, signal] = [await shell.client(), shell.ended()];
  const limit = call.number("limit", { max: CLI_RUNS_MAX }) ?? 20;
  const conditions = [
    ["name", call.optional("job")],
    ["host", call.optional("host")],
    ["status", call.optional("status")],
  ].filter((pair): pair is [string, string] => pair[1] !== undefined);
  const where = conditions.map(([name]) => `${name} = ?`).join(" and ");
  const path = await runClass(client, signal);
  const columns = "runid, name, host, status, code, stime, etime, source, message, due, signal, tries";
  const mql = `select ${columns} from ${path}${where === "" ? "" : ` where ${where}`} order by stime desc limit ${limit}`;
  const values = conditions.map(([, value]) => value);
  const body = { mql, ...(values.length > 0 && { values }) };
  await shell.show(await client.call("postMxobjectMql", { body }, { signal, isRepeatable: true }), RUNS);
}

/** Class of runs, below the name space of the tenant. The jobs of the platform are in every tenant. */
async function runClass(client: OdpClient, signal?: AbortSignal): Promise<string> {
  const [job] = await client.call("getJob", {}, { signal });
  if (job === undefined) throw new UsageError("You see no job, so you see no runs.");
  return job.class.replace(/[^/]+$/, "jobrun");
}

/** Ids of the newest runs, for completion. */
export async function newestRuns(client: OdpClient): Promise<readonly string[]> {
  const mql = `select runid from ${await runClass(client)} order by stime desc limit ${CLI_COMPLETED_RUNS_MAX}`;
  const rows = await client.call("postMxobjectMql", { body: { mql } }, { isRepeatable: true });
  return [...new Set(rows.map(({ runid }) => String(runid)))];
}

async function attachTo(call: Call): Promise<number> {
  const lines = call.number("tail", { min: 0 });
  const code = await followRun(call.shell, {
    ...{ runId: call.text("runid"), raw: call.is("raw"), lines },
  });
  if (code !== undefined) return code;
  throw new AppError("not_found", `There is no run ${call.text("runid")}. Run: odp job runs`);
}

export interface FollowedRun {
  readonly runId: string;
  readonly raw: boolean;
  readonly lines?: number | undefined;
}

/** Follows a run, which goes on after Ctrl-C. Returns the exit code; `undefined`: there is no such run. */
export async function followRun(shell: Shell, run: FollowedRun): Promise<number | undefined> {
  requireNoFormat(shell);
  const signal = shell.ended();
  try {
    const client = await shell.client();
    return await attach({
      ...run,
      ...{ client, clock: shell.clock, signal, runClass: await runClass(client, signal) },
      write: (stream, data) => shell.pass(stream, data),
    });
  } catch (error) {
    if (!signal.aborted) throw error;
    shell.note(`odp: the run goes on. Run: odp job attach ${run.runId}`);
    return CANCELLED;
  }
}

/** `UsageError` if the user wants a format: output of hosts has none. */
export function requireNoFormat({ format }: Shell): void {
  if (format !== "table") throw new UsageError(`The output of hosts is passed on as it comes: leave -o ${format} out.`);
}

async function cancel(call: Call): Promise<void> {
  const { shell } = call;
  const host = call.optional("host");
  const request = { path: { runid: call.text("runid") }, ...(host !== undefined && { body: { host } }) };
  await shell.show(await (await shell.client()).call("postJobCancelByRunid", request, { signal: shell.ended() }));
}

async function retry(call: Call): Promise<void> {
  const { shell } = call;
  const param = call.optional("param");
  if (param !== undefined) requireObject(param);
  const request = { path: { runid: call.text("runid") }, ...(param !== undefined && { body: { param } }) };
  await shell.show(await (await shell.client()).call("postJobRetryByRunid", request, { signal: shell.ended() }));
}

/** `UsageError` if the text is no JSON object. */
export function requireObject(param: string): void {
  const value = jsonIn(param, "--param");
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new UsageError(`--param takes a JSON object, as '{"LEVEL":"9"}'.`);
}
