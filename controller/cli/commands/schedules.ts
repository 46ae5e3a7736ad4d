import type { MessageOf, OdpClient, RequestOf } from "../../../common/client/index.ts";
import { isAppError } from "../../../common/errors.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { column, isRow, type Row, type View } from "../formats/columns.ts";
import { jsonIn } from "./raw.ts";
import { JOB } from "./words.ts";

type Job = MessageOf<"patchJobByPath">;
type Definition = RequestOf<"postJob">["body"];

/** How jobs are shown. */
export const JOB_VIEW: View = {
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

/** Commands of `odp job` that change definitions. */
export const SCHEDULE_COMMANDS: readonly CommandDeclaration[] = [
  {
    name: "schedule",
    summary: "make a job, or change what is given of one: its schedule, hosts and commands",
    details:
      "A file has the JSON of the whole definition, as odp job show -o json writes it; options win over it. A job that was changed by another user meanwhile is not replaced.",
    arguments: [{ ...JOB, summary: "job as <name>@<folder>; default: that of the file", isOptional: true }],
    flags: [
      {
        name: "when",
        value: "schedule",
        summary: "five fields of cron, every 5m, or at <time>; then ;tz=<zone> and others; '' for none",
      },
      { name: "host", value: "host", summary: "host, or a pattern; all of them", isRepeated: true, completes: "hosts" },
      {
        name: "exec",
        value: "command",
        summary: "line for the shell of the host; all of them, in this order",
        isRepeated: true,
      },
      { name: "timeout", value: "seconds", summary: "how long each try of a host may take" },
      { name: "retry", value: "n", summary: "how often a host that failed is tried again" },
      { name: "description", value: "text", summary: "what the job is for" },
      {
        name: "file",
        short: "f",
        value: "path",
        summary: "JSON of the definition; - is the standard input",
        completes: "files",
      },
    ],
    examples: [
      `odp job schedule backup@nightly --exec "tar -czf /var/backup.tgz /etc" --host web-1 --when "0 3 * * *;tz=Europe/Oslo"`,
      "odp job schedule backup@nightly --when 'every 6h'",
      "odp job schedule -f backup.json",
    ],
    run: schedule,
  },
  { name: "enable", summary: "let the schedule of a job begin runs", arguments: [JOB], run: enable },
  { name: "disable", summary: "let the schedule of a job begin no runs", arguments: [JOB], run: disable },
  { name: "remove", summary: "remove a job; its runs stay", arguments: [JOB], run: remove },
];

/** Members that a definition has only in answers. */
const ANSWERED: readonly string[] = [
  ...["id", "class", "fullname", "system", "created", "changed", "creator", "next", "revision"],
];

async function schedule(call: Call): Promise<void> {
  const { shell } = call;
  const file = await definitionIn(call);
  const changes = changesOf(call);
  if (file === undefined && Object.keys(changes).length === 0)
    throw new UsageError("Nothing is to be changed: add --when, --host, --exec or others, or --file.");
  const fullname = call.optional("job") ?? nameIn(file);
  const { name, dir } = namesIn(fullname);
  const [client, signal] = [await shell.client(), shell.ended()];
  const before = await jobNamed(client, fullname, signal);
  if (before !== undefined && file === undefined)
    await client.call(
      "patchJobByPath",
      { path: { path: fullname }, body: changes },
      { ifMatch: before.revision, signal },
    );
  else {
    const body = { ...file, ...changes, name, dir } as Row;
    if (!Array.isArray(body["exec"])) throw new UsageError(withoutExec(fullname, file !== undefined));
    const condition = before === undefined ? { ifNoneMatch: "*" as const } : { ifMatch: before.revision };
    await client.call("postJob", { body: body as unknown as Definition }, { ...condition, signal });
  }
  await shell.show([await jobNamed(client, fullname, signal)], JOB_VIEW);
}

function withoutExec(fullname: string, isFile: boolean): string {
  if (isFile) return "The definition of a job needs the list exec, or add --exec <command>.";
  return `There is no job ${fullname} yet: add --exec <command>.`;
}

/** The definition of `--file`; `undefined` without one. */
async function definitionIn(call: Call): Promise<Row | undefined> {
  const file = call.optional("file");
  if (file === undefined) return undefined;
  const given = jsonIn((await call.shell.input(file)).toString("utf8"), file === "-" ? "The standard input" : file);
  if (!isRow(given)) throw new UsageError("The definition of a job is a JSON object.");
  return Object.fromEntries(Object.entries(given).filter(([member]) => !ANSWERED.includes(member)));
}

function nameIn(file: Row | undefined): string {
  if (file === undefined) throw new UsageError("Name the job: odp job schedule <name>@<folder>");
  const { name, dir = "" } = file;
  if (typeof name !== "string" || typeof dir !== "string") throw new UsageError("The definition needs the text name.");
  return `${name}@${dir}`;
}

function namesIn(fullname: string): { readonly name: string; readonly dir: string } {
  const at = fullname.indexOf("@");
  return at < 0 ? { name: fullname, dir: "" } : { name: fullname.slice(0, at), dir: fullname.slice(at + 1) };
}

function changesOf(call: Call): Partial<Definition> {
  const [when, description] = [call.optional("when"), call.optional("description")];
  const [host, exec] = [call.list("host"), call.list("exec")];
  const [timeout, retry] = [call.number("timeout"), call.number("retry", { min: 0 })];
  return {
    ...(when !== undefined && { schedule: when }),
    ...(description !== undefined && { description }),
    ...(host.length > 0 && { host }),
    ...(exec.length > 0 && { exec }),
    ...(timeout !== undefined && { timeout }),
    ...(retry !== undefined && { retry }),
  };
}

async function jobNamed(client: OdpClient, fullname: string, signal: AbortSignal): Promise<Job | undefined> {
  try {
    return (await client.call("getJobByPath", { path: { path: fullname } }, { signal })) as Job;
  } catch (error) {
    if (!isAppError(error, "not_found")) throw error;
    return undefined;
  }
}

async function enable(call: Call): Promise<void> {
  const { shell } = call;
  const path = { path: call.text("job") };
  await (await shell.client()).call("getJobEnableByPath", { path }, { signal: shell.ended() });
}

async function disable(call: Call): Promise<void> {
  const { shell } = call;
  const path = { path: call.text("job") };
  await (await shell.client()).call("getJobDisableByPath", { path }, { signal: shell.ended() });
}

async function remove(call: Call): Promise<void> {
  const { shell } = call;
  const path = { path: call.text("job") };
  await (await shell.client()).call("deleteJobByPath", { path }, { signal: shell.ended() });
}
