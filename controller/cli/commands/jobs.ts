import { CLI_EXEC_INPUT_MAX_BYTES } from "../../../common/limits.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import type { Shell } from "../declared/shell.ts";
import { UsageError } from "../declared/usage.ts";
import { exec, isLong, runJob, type FollowOptions } from "../exec.ts";
import { CANCELLED } from "../failure.ts";
import { followRun, requireNoFormat, requireObject, RUN_CODES, RUN_COMMANDS } from "./runs.ts";
import { JOB_VIEW, SCHEDULE_COMMANDS } from "./schedules.ts";
import { HOST, JOB } from "./words.ts";

/** `odp job` and `odp exec`. */
export const JOB_COMMANDS: readonly CommandDeclaration[] = [
  {
    name: "exec",
    summary: "run a command on hosts, with its output as it comes and its exit code",
    details:
      "On one host the output is passed on as it is. For names with commas between, a pattern such as web-*, tag:<path>, group:<hostgroup> or where:<condition>, each line is behind the name of its host, and a line for each host follows at the end.",
    arguments: [
      { ...HOST, summary: "name of the host; or names with commas between, or an expression" },
      {
        name: "command",
        summary: "one word is a line for the shell of the host; several are passed on as typed",
        isRepeated: true,
      },
    ],
    flags: [
      { name: "timeout", value: "seconds", summary: "how long it may take; before the host", default: "60" },
      { name: "stdin", short: "i", summary: "pass the standard input on to the command; before the host" },
    ],
    exitCodes: RUN_CODES,
    examples: [
      "odp exec web-1 uptime",
      `odp exec web-1 "df -h | head -5"`,
      "odp exec tag:role/web -- systemctl is-active nginx",
      "odp exec -i web-1,web-2 sh < check.sh",
    ],
    passesThrough: true,
    run: execute,
  },
  {
    name: "job",
    summary: "list, schedule, run and cancel jobs, and see their runs",
    commands: [
      { name: "list", isReading: true, summary: "list the jobs", run: list },
      { name: "show", isReading: true, summary: "show one job", arguments: [JOB], run: show },
      {
        name: "run",
        summary:
          "run a job, with each line of its hosts' output behind the host's name and the worst of their exit codes",
        details:
          "Ctrl-C cancels the run and waits for its end; a second one leaves. With --follow, Ctrl-C leaves the run going, and odp job attach follows it again.",
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
          { name: "follow", summary: "follow the run as odp job attach does, which Ctrl-C leaves going" },
          { name: "detach", summary: "begin the run, write its id, and do not wait" },
        ],
        exitCodes: RUN_CODES,
        examples: ["odp job run backup@nightly --follow", "odp job run backup@nightly --host web-1 web-2 --raw"],
        run,
      },
      ...SCHEDULE_COMMANDS,
      ...RUN_COMMANDS,
    ],
  },
];

async function list({ shell }: Call): Promise<void> {
  await shell.show(await (await shell.client()).call("getJob", {}, { signal: shell.ended() }), JOB_VIEW);
}

async function show(call: Call): Promise<void> {
  const { shell } = call;
  const path = { path: call.text("job") };
  await shell.show(await (await shell.client()).call("getJobByPath", { path }, { signal: shell.ended() }), JOB_VIEW);
}

async function execute(call: Call): Promise<number> {
  const timeoutSeconds = call.number("timeout") ?? 60;
  const input = call.is("stdin") ? await call.shell.input("-") : undefined;
  if (input !== undefined && input.length > CLI_EXEC_INPUT_MAX_BYTES)
    throw new UsageError(
      `The standard input has more than ${CLI_EXEC_INPUT_MAX_BYTES} bytes: put it on the hosts as a depot.`,
    );
  return followed(call.shell, (following) =>
    exec({ ...following, host: call.text("host"), command: call.list("command"), timeoutSeconds, input }),
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
  if (call.is("detach")) return call.shell.show(await begin(call.shell, given));
  if (call.is("follow")) return beginAndFollow(call, given);
  return followed(call.shell, (following) => runJob({ ...following, ...given, raw: call.is("raw") }));
}

interface Given {
  readonly job: string;
  readonly hosts?: readonly string[];
  readonly param?: string;
  readonly timeoutSeconds?: number;
}

/** Returns the id of the run. */
async function begin(shell: Shell, { job, hosts, param, timeoutSeconds }: Given): Promise<string> {
  const members = { ...(JSON.parse(param ?? "{}") as object), ...(hosts && { "HOST!": hosts }) };
  const query = { param: JSON.stringify(members), ...(timeoutSeconds !== undefined && { timeout: timeoutSeconds }) };
  const [client, signal, path] = [await shell.client(), shell.ended(), { path: job }];
  const runId = isLong(query.param)
    ? await client.call("postJobExecByPath", { path, body: query }, { signal })
    : await client.call("getJobExecByPath", { path, query }, { signal });
  return String(runId);
}

async function beginAndFollow(call: Call, given: Given): Promise<number | undefined> {
  const { shell } = call;
  requireNoFormat(shell);
  const runId = await begin(shell, given);
  shell.note(`odp: run ${runId}`);
  return followRun(shell, { runId, raw: call.is("raw") });
}

/** The first signal cancels the run and waits for its end, the second leaves it. */
async function followed(shell: Shell, work: (following: FollowOptions) => Promise<number>): Promise<number> {
  requireNoFormat(shell);
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
