import { setTimeout } from "node:timers/promises";
import { Command } from "commander";
import { OdpClient } from "../../common/client/index.ts";
import { platformClock, platformRandom } from "../../common/client/platform.ts";
import { AppError, errorText } from "../../common/errors.ts";
import { KEY_STATUS_DEADLINE_MS } from "../../common/limits.ts";
import { parseTimestamp } from "../../common/timestamps.ts";
import { counted } from "../../common/text/counted.ts";
import packageJson from "../../package.json" with { type: "json" };
import { aheadOf, aheadRows } from "./ahead.ts";
import { exportAudit, verifyAudit } from "./audit.ts";
import { addFileCommands } from "./fs/commands.ts";
import { exec, runJob, type FollowOptions } from "./exec.ts";
import { exitCodeOfKeys, keyStatusOf, keyText, makeKeyFile, rotateKeyFile } from "./key.ts";
import { exitCodeOf, followScrub, statusExitCodeOf, statusOf } from "./scrub.ts";
import { repairRows, repairsOf } from "./repairs.ts";
import { joinLine, tokenRows } from "./join.ts";
import { Output } from "./output.ts";
import { table } from "./table.ts";

/** `odp`: the command line. A client of the HTTP interface like any other. */

const CALL_TIMEOUT_MS = 120_000;
const SCRUB_LOOK_EVERY_MS = 2_000;
/** As a shell says of what SIGINT ended. */
const CANCELLED = 130;
const { version } = packageJson;

const output = new Output(process, (text) => console.error(text));

const program = new Command("odp")
  .description("Operations data platform, from the command line")
  .option("--url <url>", "the controller", process.env["ODP_URL"] ?? "http://127.0.0.1:8080")
  .option("--user <tenant.user>", "who asks", process.env["ODP_USER"] ?? "matrix.admin")
  .option("--json", "answer as JSON")
  .version(version)
  .enablePositionalOptions()
  .addHelpText("after", "\nThe password is read from ODP_PASSWORD.");

program
  .command("mql <statement>")
  .description("run MQL and show the rows of its last statement")
  .action(async (statement: string) => {
    const { message: rows, more, warnings } = await client().answer("postMxobjectMql", { body: { mql: statement } });
    warnings.forEach(warn);
    show(rows);
    if (more)
      console.error(`${counted(rows.length, "row")}; there are more: add LIMIT n, or LIMIT -1 for all of them.`);
  });

program
  .command("hosts")
  .description("list hosts")
  .action(async () => show(await client().call("getHost")));

program
  .command("token [host]")
  .description("make a one-time token and show the line by which an agent joins with it")
  .action(async (host?: string) => {
    const body = host === undefined ? {} : { host };
    const { message: answer, warnings } = await client().answer("postAgentToken", { body });
    warnings.forEach(warn);
    const { json, url } = program.opts<{ json?: boolean; url: string }>();
    if (json) return show(answer);
    console.error(`On ${host ?? "the host"}, beside agent.js (dist/agent.js of the controller):`);
    console.log(joinLine(answer, host, url));
  });

program
  .command("tokens")
  .description("list join tokens until they expire")
  .action(async () => {
    const listed = await client().call("getAgentToken");
    show(program.opts<{ json?: boolean }>().json ? listed : tokenRows(listed));
  })
  .command("revoke <id>")
  .description("end a join token that was not used")
  .action(async (id: string) => {
    await client().call("deleteAgentTokenById", { path: { id } });
  });

const key = program
  .command("key")
  .description("make the key file that seals secrets, or put a new key into it")
  .argument("<file>", "the file to make: all controllers of a cluster need the same")
  .action(async (file: string) => {
    await makeKeyFile(file);
    console.error(`${file} is made. Every controller of a cluster needs a copy; without one, what is sealed is lost.`);
  });

key
  .command("rotate <file>")
  .description("put a new key above the others of a key file on this machine, and write its id")
  .action(async (file: string) => {
    const id = await rotateKeyFile(file);
    if (program.opts<{ json?: boolean }>().json) show({ file, id });
    else console.log(id);
    console.error(
      `${file} begins with a new key. Copy it to every other controller; each reads it within a minute, or at once by: odp key reload`,
    );
  });

key
  .command("reload")
  .description("have the controller read its keys again where they come from; only the one that is asked")
  .action(async () => {
    await client().call("postKeyReload");
  });

key
  .command("status")
  .description(
    "show which key seals, and what needs a former one (0: everything is sealed with the first key, 1: not asked, 2: something is in the way, 3: sealing anew is under way)",
  )
  .action(async () => {
    const status = await keyStatusOf(client(KEY_STATUS_DEADLINE_MS));
    if (program.opts<{ json?: boolean }>().json) show(status);
    else await output.write(keyText(status));
    process.exitCode = exitCodeOfKeys(status);
  });

program
  .command("exec <host> <command...>")
  .description(
    "run a command on a host, with its output as it comes and its exit code (124: no end in time, 130: cancelled, 255: not reached)",
  )
  .option("--timeout <seconds>", "how long it may take; before the host", "60")
  .passThroughOptions()
  .action((host: string, command: readonly string[], { timeout }: { timeout: string }) =>
    followed((following) => exec({ ...following, host, command, timeoutSeconds: Number(timeout) })),
  );

interface JobRunWords {
  readonly host?: readonly string[];
  readonly param?: string;
  readonly timeout?: string;
  readonly raw?: boolean;
}

const job = program.command("job").description("run a job, cancel a run, try the failed hosts of a run again");

job
  .command("run <name>")
  .description(
    "run the job <name>@<dir>, with each line of its hosts' output behind the host's name and the worst of their exit codes",
  )
  .option("--host <host...>", "in the place of the job's hosts")
  .option("--param <json>", "a JSON object: parameters of the run")
  .option("--timeout <seconds>", "how long each try of a host may take")
  .option("--raw", "the output as it comes, without the names of hosts")
  .action((name: string, { host, param, timeout, raw = false }: JobRunWords) =>
    followed((following) =>
      runJob({
        ...following,
        job: name,
        raw,
        ...(host && { hosts: host }),
        ...(param !== undefined && { param }),
        ...(timeout !== undefined && { timeoutSeconds: Number(timeout) }),
      }),
    ),
  );

job
  .command("cancel <runid>")
  .description("cancel a run; answers whether it was not over yet")
  .option("--host <host>", "only there")
  .action(async (runid: string, { host }: { host?: string }) =>
    show(
      await client().call("postJobCancelByRunid", { path: { runid }, ...(host !== undefined && { body: { host } }) }),
    ),
  );

job
  .command("retry <runid>")
  .description("run the job again on the hosts on which that run failed; answers the id of the new run")
  .option("--param <json>", "a JSON object: what that run was given, which is not kept")
  .action(async (runid: string, { param }: { param?: string }) =>
    show(
      await client().call("postJobRetryByRunid", { path: { runid }, ...(param !== undefined && { body: { param } }) }),
    ),
  );

interface ScrubWords {
  readonly rate?: string;
  readonly status?: boolean;
  readonly stop?: boolean;
}

program
  .command("scrub")
  .description(
    "compare indexes and edges of the tenant with its objects, and contents with their digests, and mend what can be mended (0: sound or mended, 2: a content is damaged, or it was stopped); goes on when this command ends",
  )
  .option("--rate <n>", "comparisons with the store a second, at most")
  .option(
    "--status",
    "only show how far it is, what the last one found, whether one is due, and which rows are damaged (2: something is)",
  )
  .option("--stop", "stop the one that is under way")
  .action(async ({ rate, status, stop }: ScrubWords) => {
    if (status) {
      const found = await statusOf(client());
      show(found);
      process.exitCode = statusExitCodeOf(found);
      return;
    }
    if (stop) return show(await client().call("deleteClusterScrub"));
    const signal = ended();
    const pause = () => setTimeout(SCRUB_LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
    const following = { client: client(), pause, signal, note: (text: string) => console.error(text) };
    const report = await followScrub(following, rate === undefined ? undefined : Number(rate));
    if (report === undefined) return;
    show(report);
    process.exitCode = exitCodeOf(report);
  });

program
  .command("repairs")
  .description(
    "show when the tables of the tenant were last repaired on all nodes of Cassandra, and which are due (0: none, 2: one is)",
  )
  .action(async () => {
    const repairs = await repairsOf(client());
    show(program.opts<{ json?: boolean }>().json ? repairs : repairRows(repairs));
    if (repairs.due) process.exitCode = 2;
  });

program
  .command("ahead")
  .description(
    "list objects whose last write is ahead of the controller's clock, as an earlier version took them by AT (0: none, 2: there are some)",
  )
  .option("--limit <n>", "how many at most", "100")
  .action(async ({ limit }: { limit: string }) => {
    const found = await aheadOf(client(), Number(limit));
    show(program.opts<{ json?: boolean }>().json ? found : aheadRows(found));
    if (found.more) console.error(`There may be more than these ${found.objects.length}: add --limit <n>.`);
    if (found.objects.length > 0) process.exitCode = 2;
  });

const audit = program.command("audit").description("check or export the audit trail of the tenant");

audit
  .command("verify")
  .description(
    "read the whole trail and name the first entry that does not hold (0: sound, 1: not asked, 2: broken, 3: sound, but not kept outside the store)",
  )
  .option("--anchor <file...>", "anchor files of other controllers, besides that of the controller asked")
  .action(async ({ anchor = [] }: { anchor?: readonly string[] }) => {
    const { user, json = false } = program.opts<{ user: string; json?: boolean }>();
    process.exitCode = await verifyAudit({
      client: client(),
      signal: ended(),
      tenant: user.split(".", 1)[0] ?? "",
      anchorFiles: anchor,
      json,
      write: (text) => output.write(text),
      note: (text) => console.error(text),
    });
  });

audit
  .command("export")
  .description("write every entry as a line of JSON, the newest first")
  .option("--from <time>", "entries from then on")
  .option("--to <time>", "entries before")
  .action(async ({ from, to }: { from?: string; to?: string }) => {
    const period = { ...(from !== undefined && { from: timeOf(from) }), ...(to !== undefined && { to: timeOf(to) }) };
    const entries = await exportAudit(
      { client: client(), signal: ended(), write: (text: string) => output.write(text) },
      period,
    );
    console.error(counted(entries, "entry", "entries"));
  });

addFileCommands(program, {
  client,
  ended,
  show,
  write: (data) => output.write(data),
  note: (text) => console.error(text),
  isJson: () => program.opts<{ json?: boolean }>().json === true,
  controller() {
    const { url, user } = program.opts<{ url: string; user: string }>();
    return `${url.replace(/\/+$/, "")} ${user.split(".", 1)[0] ?? ""}`;
  },
  stderr: process.stderr,
  clock: { ...platformClock, nowMs: () => Date.now() },
  random: platformRandom,
  platform: process.platform,
  setExitCode: (code) => (process.exitCode = code),
});

try {
  await program.parseAsync();
} catch (error) {
  console.error(`odp: ${errorText(error)}`);
  process.exitCode = 1;
}

function client(timeoutMs = CALL_TIMEOUT_MS): OdpClient {
  const { url, user } = program.opts<{ url: string; user: string }>();
  return new OdpClient({ url, user, password: process.env["ODP_PASSWORD"] ?? "", timeoutMs });
}

/** The first signal cancels the run and waits for its end, the second leaves it. */
async function followed(work: (following: FollowOptions) => Promise<number>): Promise<void> {
  const [cancel, leave] = [new AbortController(), new AbortController()];
  const interrupt = (): void => (cancel.signal.aborted ? leave : cancel).abort();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, interrupt);
  const write = (stream: "stdout" | "stderr", data: Uint8Array) => void process[stream].write(data);
  try {
    process.exitCode = await work({ client: client(), cancel: cancel.signal, leave: leave.signal, write });
  } catch (error) {
    if (!leave.signal.aborted) throw error;
    process.exitCode = CANCELLED;
  }
}

/** Fires when the call is to end early. */
function ended(): AbortSignal {
  const over = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => over.abort());
  return over.signal;
}

function timeOf(text: string): number {
  const timeMs = parseTimestamp(text);
  if (timeMs === undefined) throw new AppError("invalid", `${text} is no time.`);
  return timeMs;
}

function warn(text: string): void {
  console.error(`warning: ${text}`);
}

function show(answer: unknown): void {
  if (program.opts<{ json?: boolean }>().json) console.log(JSON.stringify(answer, undefined, 2));
  else if (Array.isArray(answer)) console.log(table(answer));
  else console.log(typeof answer === "string" ? answer.trimEnd() : JSON.stringify(answer, undefined, 2));
}
