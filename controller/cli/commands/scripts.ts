import type { OdpClient } from "../../../common/client/index.ts";
import { mapLimited } from "../../../common/concurrency.ts";
import { isAppError } from "../../../common/errors.ts";
import { CLI_CALLS_AT_ONCE } from "../../../common/limits.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { column, type View } from "../formats/columns.ts";
import { LOG_FLAGS, showLog } from "./logs.ts";
import { jsonIn } from "./raw.ts";

/** Folder of the file space that holds the scripts. */
const ROOT = "script";

interface File {
  readonly fullname: string;
  readonly isdir: boolean;
}

const VIEW: View = {
  name: "script",
  columns: [
    column("script", { isWhole: true }),
    column("size"),
    column("changed", { member: "mtime", isTime: true }),
    column("owner", { member: "username" }),
    column("tags", { isWide: true }),
  ],
};
const SCRIPT = { name: "script", summary: "path below /script, such as /report.js", completes: "scripts" } as const;

/** `odp script` */
export const SCRIPT_COMMANDS: CommandDeclaration = {
  name: "script",
  summary: "list and run scripts of the controller, and see what they wrote",
  commands: [
    {
      name: "list",
      isReading: true,
      summary: "list the scripts, with all folders",
      arguments: [{ name: "folder", summary: "folder below /script; default: all", isOptional: true }],
      run: list,
    },
    {
      name: "run",
      summary: "run a script with your rights, and write its OUTPUT",
      details: "To store scripts on the controller: odp fs cp report.js odp:/script/",
      arguments: [{ ...SCRIPT, isOptional: true }],
      flags: [
        {
          name: "file",
          short: "f",
          value: "path",
          summary: "run this local file, in place of a script of the controller; - is the standard input",
          completes: "files",
        },
        { name: "input", value: "text", summary: "INPUT of the script: a text" },
        { name: "json-input", value: "json", summary: "the same: any JSON, for a script of the controller" },
        { name: "system", summary: "only a script of the system's file space, for administrators" },
      ],
      examples: ["odp script run /report.js --json-input '{\"days\":7}'", "odp script run -f try.js"],
      run,
    },
    {
      name: "logs",
      summary: "show what a script wrote, and why its runs failed",
      arguments: [SCRIPT],
      flags: LOG_FLAGS,
      run: logs,
    },
  ],
};

/** Files of a folder below `/script` and of all folders in it, by name. */
async function filesBelow<T extends File>(
  client: OdpClient,
  folder: string,
  signal?: AbortSignal,
): Promise<readonly T[]> {
  const query = { type: "dir" };
  const message = await client.call("getFsByPath", { path: { path: folder }, query }, { signal });
  if (!Array.isArray(message)) return [];
  const entries = (message as unknown as readonly T[]).toSorted((one, other) =>
    one.fullname < other.fullname ? -1 : 1,
  );
  const each = await mapLimited(entries, CLI_CALLS_AT_ONCE, (entry) =>
    entry.isdir ? filesBelow<T>(client, entry.fullname.replace(/^\/+/, ""), signal) : Promise.resolve([entry]),
  );
  return each.flat();
}

/** Paths of the scripts below `/script`, for completion. */
export async function scriptPaths(client: OdpClient): Promise<readonly string[]> {
  return (await filesBelow(client, ROOT)).map(({ fullname }) => pathOf(fullname));
}

/** The path by which a script is run. */
function pathOf(fullname: string): string {
  return fullname.replace(/^\/script(?=\/)/, "");
}

async function list(call: Call): Promise<void> {
  const { shell } = call;
  const folder = call.optional("folder")?.replace(/^\/+|\/+$/g, "") ?? "";
  const at = folder === "" ? ROOT : `${ROOT}/${folder}`;
  const client = await shell.client();
  const files = await filesBelow(client, at, shell.ended()).catch((error: unknown) => {
    // No script was stored yet.
    if (folder === "" && isAppError(error, "not_found")) return [];
    throw error;
  });
  await shell.show(
    files.map((file) => ({ script: pathOf(file.fullname), ...file })),
    VIEW,
  );
}

async function run(call: Call): Promise<void> {
  const { shell } = call;
  const [filepath, file] = [call.optional("script"), call.optional("file")];
  if ((filepath === undefined) === (file === undefined)) throw new UsageError("Give the path of a script, or --file.");
  const input = inputOf(call);
  const members = { ...(input !== undefined && { input }), ...(call.is("system") && { issys: true }) };
  const request =
    file === undefined
      ? { body: { ...members, filepath: call.text("script") } }
      : { body: (await shell.input(file)).toString("utf8"), query: { ...members, isfile: false } };
  const client = await shell.client();
  await shell.show(await client.call("postScriptExecJs", request, { signal: shell.ended() }));
}

/** Value of INPUT in the script; `undefined` if nothing was given. */
function inputOf(call: Call): unknown {
  const [text, json] = [call.optional("input"), call.optional("json-input")];
  if (text !== undefined && json !== undefined) throw new UsageError("Give one of --input and --json-input.");
  if (json !== undefined && call.optional("file") !== undefined)
    throw new UsageError("A local file takes a text: use --input, and JSON.parse(INPUT) in the script.");
  return json === undefined ? text : jsonIn(json, "--json-input");
}

function logs(call: Call): Promise<number | void> {
  return showLog(call, { kind: "serverjs", name: `/${call.text("script").replace(/^\/+/, "")}` });
}
