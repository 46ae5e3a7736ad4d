import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import type { MessageOf, NamedContent, OdpClient } from "../../../common/client/index.ts";
import { AppError } from "../../../common/errors.ts";
import { CLI_UPLOAD_MAX_BYTES } from "../../../common/limits.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration, FlagDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { column, type View } from "../formats/columns.ts";
import { DEPOT } from "./words.ts";

const VIEW: View = {
  name: "name",
  columns: [
    column("name", { isWhole: true }),
    column("version"),
    column("versions"),
    column("files", { member: "filecount" }),
    column("bytes", { member: "size" }),
    column("created", { isTime: true }),
    column("remark", { isWide: true }),
    column("tags", { isWide: true }),
    column("command", { isWide: true }),
    column("creator", { isWide: true }),
  ],
};
const DEPLOYED: View = {
  name: "host",
  columns: [
    column("host"),
    column("depot"),
    column("version"),
    column("state"),
    column("code"),
    column("message"),
    column("ended", { member: "endedMs", isTime: true, isWide: true }),
  ],
};
const WAITING: View = {
  name: "id",
  columns: [
    column("id", { isWhole: true }),
    column("action"),
    column("depots", {
      of: ({ depots }) =>
        (depots as readonly { readonly depot: string; readonly version: string }[]).map(
          ({ depot, version }) => `${depot}@${version}`,
        ),
    }),
    column("state"),
    column("user", { member: "username" }),
    column("until", { member: "untilMs", isTime: true }),
    column("cancelled by", { member: "cancelledBy", isWide: true }),
  ],
};
const WAITING_HOSTS: View = {
  name: "host",
  columns: [
    column("host", { isWhole: true }),
    column("state"),
    column("message"),
    column("since", { member: "sinceMs", isTime: true }),
  ],
};
const DEPLOYMENT_ID = { name: "id", summary: "id of the deployment, as odp deployment list shows it" };
const PLACED_FLAGS: readonly FlagDeclaration[] = [
  { name: "host", value: "host", summary: "host; may be repeated", isRepeated: true, completes: "hosts" },
  { name: "path", value: "path", summary: "folder on the host in place of the agent's own" },
  { name: "command", value: "command", summary: "command to run there, in place of that of the depot" },
  { name: "timeout", value: "seconds", summary: "time for each host", default: "60" },
  { name: "force", summary: "also what policies use" },
  {
    name: "wait",
    value: "time",
    summary: "wait for hosts that are away up to this time, such as 30m, 2h or 1d; shows the id at once",
  },
];
const PLACED_CODES = {
  0: "all hosts have succeeded; with --wait: the deployment is stored",
  1: "a host has failed, or the call, or there is no host",
};
const VERSIONED = { ...DEPOT, summary: "depot as <name> or <name>@<version>; default: the newest version" };

/** `odp depot`, `odp deploy` and `odp undeploy`. */
export const DEPOT_COMMANDS: readonly CommandDeclaration[] = [
  {
    name: "depot",
    summary: "list, upload and remove depots: versioned packages of files for hosts",
    commands: [
      { name: "list", isReading: true, summary: "list the depots", run: list },
      { name: "show", isReading: true, summary: "show a depot and its files", arguments: [VERSIONED], run: show },
      {
        name: "upload",
        summary: "store a version of a depot",
        details: "One archive is unpacked. Several files are stored as they are.",
        arguments: [
          { name: "depot", summary: "<name>@<version>, such as check@1.0.0" },
          { name: "file", summary: "archive, or files", isRepeated: true, completes: "files" },
        ],
        flags: [
          { name: "remark", value: "text", summary: "note about the version" },
          {
            name: "command",
            value: "command",
            summary: "command that hosts run in the folder once the depot is in place",
          },
          { name: "overwrite", summary: "replace the files of a version that exists" },
        ],
        examples: ["odp depot upload check@1.0.0 check.tar.gz"],
        run: upload,
      },
      {
        name: "remove",
        summary: "remove a version of a depot, or with --all the depot",
        arguments: [{ ...DEPOT, summary: "<name>@<version>, or <name> with --all" }],
        flags: [
          { name: "all", summary: "all versions" },
          { name: "force", summary: "also what policies use" },
        ],
        run: remove,
      },
    ],
  },
  {
    name: "deploy",
    summary: "put a depot on hosts",
    arguments: [VERSIONED],
    flags: PLACED_FLAGS,
    exitCodes: PLACED_CODES,
    examples: ["odp deploy check@1.0.0 --host web-1 --host web-2"],
    run: (call) => placed(call, "postMonitoringDeploy"),
  },
  {
    name: "undeploy",
    summary: "take a depot off hosts",
    arguments: [VERSIONED],
    flags: PLACED_FLAGS,
    exitCodes: PLACED_CODES,
    run: (call) => placed(call, "postMonitoringUndeploy"),
  },
  {
    name: "deployment",
    summary: "list, show and cancel deployments that wait for hosts",
    commands: [
      { name: "list", isReading: true, summary: "list the deployments with --wait, the newest first", run: waiting },
      {
        name: "show",
        isReading: true,
        summary: "show the state of each host of a deployment",
        arguments: [DEPLOYMENT_ID],
        run: waitingHosts,
      },
      {
        name: "cancel",
        summary: "cancel a deployment on the hosts that it waits for",
        arguments: [DEPLOYMENT_ID],
        run: cancelWaiting,
      },
    ],
  },
];

interface DepotVersion {
  readonly name: string;
  /** Empty: the newest. */
  readonly version: string;
}

function versionIn(text: string): DepotVersion {
  const at = text.lastIndexOf("@");
  return at < 1 ? { name: text, version: "" } : { name: text.slice(0, at), version: text.slice(at + 1) };
}

async function list({ shell }: Call): Promise<void> {
  await shell.show(await (await shell.client()).call("getMonitoringDepot", {}, { signal: shell.ended() }), VIEW);
}

async function show(call: Call): Promise<void> {
  const { shell } = call;
  const depot = await depotOf(await shell.client(), versionIn(call.text("depot")), shell.ended());
  await shell.show(depot, VIEW);
}

function depotOf(
  client: OdpClient,
  { name, version }: DepotVersion,
  signal: AbortSignal,
): Promise<MessageOf<"getMonitoringDepotByName">> {
  const request = { path: { name }, ...(version !== "" && { query: { version } }) };
  return client.call("getMonitoringDepotByName", request, { signal });
}

async function upload(call: Call): Promise<void> {
  const { shell } = call;
  const { name, version } = versionIn(call.text("depot"));
  if (version === "") throw new UsageError(`Name the version: ${name}@1.0.0`);
  const uploadfile = await contentsOf(call.list("file"));
  const [remark, command] = [call.optional("remark"), call.optional("command")];
  const body = {
    ...{ name, version, uploadfile },
    ...(remark !== undefined && { remark }),
    ...(command !== undefined && { command }),
    ...(call.is("overwrite") && { overwrite: true }),
  };
  const client = await shell.client();
  await shell.show(await client.call("putMonitoringDepot", { body }, { signal: shell.ended() }), VIEW);
}

/** The files, which are held as a whole so that the call can be repeated. */
async function contentsOf(paths: readonly string[]): Promise<readonly NamedContent[]> {
  let bytes = 0;
  const contents: NamedContent[] = [];
  for (const path of paths) {
    const stats = await stat(path);
    if (!stats.isFile()) throw new UsageError(`${path} is no file: pack a folder into an archive.`);
    if ((bytes += stats.size) > CLI_UPLOAD_MAX_BYTES)
      throw new AppError("too_large", `The files have more than ${CLI_UPLOAD_MAX_BYTES} bytes.`);
    contents.push({ name: basename(path), content: Uint8Array.from(await readFile(path)) });
  }
  const names = contents.map((one) => one.name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new UsageError(`Two files have the name ${twice}.`);
  return contents;
}

async function remove(call: Call): Promise<void> {
  const { shell } = call;
  const { name, version } = versionIn(call.text("depot"));
  if ((version === "") !== call.is("all"))
    throw new UsageError(
      version === "" ? `Name the version (${name}@1.0.0), or add --all.` : "--all is for a depot without a version.",
    );
  const [client, signal] = [await shell.client(), shell.ended()];
  const versions = version === "" ? (await depotOf(client, { name, version }, signal)).versions : [version];
  for (const one of versions) {
    const query = { version: one, ...(call.is("force") && { force: true }) };
    await client.call("deleteMonitoringDepotByName", { path: { name }, query }, { signal });
  }
}

async function placed(call: Call, id: "postMonitoringDeploy" | "postMonitoringUndeploy"): Promise<number> {
  const { shell } = call;
  const hosts = call.list("host");
  if (hosts.length === 0) throw new UsageError("Name the hosts: --host <host>");
  const [client, signal] = [await shell.client(), shell.ended()];
  const { name, version } = versionIn(call.text("depot"));
  const newest = version === "" ? (await depotOf(client, { name, version }, signal)).version : version;
  const timeout = call.number("timeout", { max: 86_400 }) ?? 60;
  const [remotepath, command, wait] = [call.optional("path"), call.optional("command"), call.optional("wait")];
  const body = {
    ...{ hosts, depots: [name], versions: [newest], timeout },
    ...(remotepath !== undefined && { remotepath }),
    ...(command !== undefined && { command }),
    ...(wait !== undefined && { wait }),
    ...(call.is("force") && { force: true }),
  };
  const results = await client.call(id, { body }, { signal, timeoutMs: timeout * 1_000 + 60_000 });
  if (!Array.isArray(results)) {
    await shell.show(results, WAITING);
    return 0;
  }
  await shell.show(results, DEPLOYED);
  return results.length > 0 && results.every(({ state }) => state === "ok") ? 0 : 1;
}

async function waiting({ shell }: Call): Promise<void> {
  const client = await shell.client();
  await shell.show(await client.call("getMonitoringDeployment", {}, { signal: shell.ended() }), WAITING);
}

async function waitingHosts(call: Call): Promise<void> {
  const { shell } = call;
  const path = { id: call.text("id") };
  const found = await (await shell.client()).call("getMonitoringDeploymentById", { path }, { signal: shell.ended() });
  await shell.show(found.hosts, WAITING_HOSTS);
}

async function cancelWaiting(call: Call): Promise<void> {
  const { shell } = call;
  const path = { id: call.text("id") };
  const client = await shell.client();
  const left = await client.call("deleteMonitoringDeploymentById", { path }, { signal: shell.ended() });
  await shell.show(left.hosts, WAITING_HOSTS);
}
