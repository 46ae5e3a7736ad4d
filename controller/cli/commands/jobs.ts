import { CLI_RUNS_MAX } from "../../../common/limits.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import type { Shell } from "../declared/shell.ts";
import { UsageError } from "../declared/usage.ts";
import { exec, runJob, type FollowOptions } from "../exec.ts";
import { CANCELLED } from "../failure.ts";
import { column, type View } from "../formats/columns.ts";
import { HOST, JOB } from "./words.ts";

const OTHER_CODES = {
  124: "no end in time",
  130: "cancelled",
  255: "a host was not reached",
};
const VIEW: View = {
  name: "fullname",
  columns: [
    column("job", { member: "fullname", isWhole: true }),
    column("enabled", { of: ({ enable }) => (enable === 1 ? "yes" : "no") }),
    column("schedule"),
    column("next", { of: ({ next }) => (Array.isArray(next) ? next[0] : undefined), isTime: true }),
    column("hosts", { member: "host" }),
    column("description"),
    column("groups", { member: "group", isWide: true }),
    column("exec", { isWide: true }),
    column("timeout", { isWide: true }),
    column("changed", { isTime: true, isWide: true }),
    column("creator", { isWide: true }),
  ],
};
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
const RUN = { name: "runid", summary: "id of the run, as odp job runs shows it" } as const;
const PARAM = { name: "param", value: "json", summary: "JSON object of parameters" } as const;

/** `odp job` and `odp exec`. */
export const JOB_COMMANDS: readonly CommandDeclaration[] = [
  {
    name: "exec",
    summary: "run a command on a host, with its output as it comes and its exit code",
    arguments: [
      HOST,
      {
        name: "command",
        summary: "one word is a line for the shell of the host; several are passed on as typed",
        isRepeated: true,
      },
    ],
    flags: [{ name: "timeout", value: "seconds", summary: "how long it may take; before the host", default: "60" }],
    exitCodes: OTHER_CODES,
    examples: ["odp exec web-1 uptime", `odp exec web-1 "df -h | head -5"`],
    passesThrough: true,
    run: execute,
  },
  {
    name: "job",
    summary: "list, run and cancel jobs, and see their runs",
    commands: [
      { name: "list", isReading: true, summary: "list the jobs", run: list },
      { name: "show", isReading: true, summary: "show one job", arguments: [JOB], run: show },
      {
        name: "run",
        summary:
          "run a job, with each line of its hosts' output behind the host's name and the worst of their exit codes",
        details: "Ctrl-C cancels the run and waits for its end; a second one leaves.",
        arguments: [JOB],
        flags: [
          {
            name: "host",
            value: "host",
            summary: "in place of the hosts of the job",
            takesMany: true,
            completes: "hosts",
          },
          { name: "param", value: "json", summary: "a JSON object: parameters of the run" },
          { name: "timeout", value: "seconds", summary: "how long each try of a host may take" },
          { name: "raw", summary: "the output as it comes, without the names of hosts" },
          { name: "follow", summary: "show the output until the run ends; this is so unless --detach is given" },
          { name: "detach", summary: "begin the run, write its id, and do not wait" },
        ],
        exitCodes: OTHER_CODES,
        examples: ["odp job run backup@nightly --follow", "odp job run backup@nightly --host web-1 web-2 --raw"],
        run,
      },
      {
        name: "runs",
        isReading: true,
        summary: "list the newest runs, of one job or of all",
        arguments: [{ ...JOB, isOptional: true }],
        flags: [
          { name: "host", value: "host", summary: "only there", completes: "hosts" },
          { name: "status", value: "status", summary: "only those in this state, such as running or failed" },
          { name: "limit", value: "n", summary: `how many, up to ${CLI_RUNS_MAX}`, default: "20" },
        ],
        run: runs,
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
        flags: [{ ...PARAM, summary: "a JSON object: what that run was given, which is not kept" }],
        run: retry,
      },
    ],
  },
];

async function list({ shell }: Call): Promise<void> {
  await shell.show(await (await shell.client()).call("getJob", {}, { signal: shell.ended() }), VIEW);
}

async function show(call: Call): Promise<void> {
  const { shell } = call;
  const path = { path: call.text("job") };
  await shell.show(await (await shell.client()).call("getJobByPath", { path }, { signal: shell.ended() }), VIEW);
}

function execute(call: Call): Promise<number> {
  const timeoutSeconds = call.number("timeout") ?? 60;
  return followed(call.shell, (following) =>
    exec({ ...following, host: call.text("host"), command: call.list("command"), timeoutSeconds }),
  );
}

async function run(call: Call): Promise<number | void> {
  if (call.is("follow") && call.is("detach")) throw new UsageError("--follow and --detach exclude each other.");
  const [hosts, param, timeoutSeconds] = [call.list("host"), call.optional("param"), call.number("timeout")];
  if (param !== undefined) requireObject(param);
  const given = {
    job: call.text("job"),
    ...(hosts.length > 0 && { hosts }),
    ...(param !== undefined && { param }),
    ...(timeoutSeconds !== undefined && { timeoutSeconds }),
  };
  if (call.is("detach")) return begin(call.shell, given);
  return followed(call.shell, (following) => runJob({ ...following, ...given, raw: call.is("raw") }));
}

interface Given {
  readonly job: string;
  readonly hosts?: readonly string[];
  readonly param?: string;
  readonly timeoutSeconds?: number;
}

async function begin(shell: Shell, { job, hosts, param, timeoutSeconds }: Given): Promise<void> {
  const members = { ...(JSON.parse(param ?? "{}") as object), ...(hosts && { "HOST!": hosts }) };
  const query = { param: JSON.stringify(members), ...(timeoutSeconds !== undefined && { timeout: timeoutSeconds }) };
  const client = await shell.client();
  await shell.show(await client.call("getJobExecByPath", { path: { path: job }, query }, { signal: shell.ended() }));
}

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
async function runClass(client: Awaited<ReturnType<Shell["client"]>>, signal: AbortSignal): Promise<string> {
  const [job] = await client.call("getJob", {}, { signal });
  if (job === undefined) throw new UsageError("You see no job, so you see no runs.");
  return job.class.replace(/[^/]+$/, "jobrun");
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

function requireObject(param: string): void {
  let value: unknown;
  try {
    value = JSON.parse(param);
  } catch (error) {
    throw new UsageError(`--param is no JSON: ${(error as Error).message}.`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new UsageError(`--param takes a JSON object, as '{"LEVEL":"9"}'.`);
}

/** The first signal cancels the run and waits for its end, the second leaves it. */
async function followed(shell: Shell, work: (following: FollowOptions) => Promise<number>): Promise<number> {
  const { first, second, release } = shell.signals();
  try {
    const client = await shell.client();
    return await work({ client, cancel: first, leave: second, write: (stream, data) => shell.pass(stream, data) });
  } catch (error) {
    if (!second.aborted) throw error;
    return CANCELLED;
  } finally {
    release();
  }
}
