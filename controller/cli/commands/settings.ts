import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { column, type View } from "../formats/columns.ts";

const VIEW: View = {
  name: "key",
  columns: [
    column("key", { isWhole: true }),
    column("value"),
    column("author", { isWide: true }),
    column("changed", { isTime: true, isWide: true }),
    column("expires", { isTime: true, isWide: true }),
    column("version", { isWide: true }),
  ],
};
const KEY = { name: "key", summary: "key, such as /matrix/etc/mail" } as const;

/** `odp config` */
export const CONFIG_COMMANDS: CommandDeclaration = {
  name: "config",
  summary: "read and change entries of configuration",
  commands: [
    {
      name: "list",
      isReading: true,
      summary: "list the entries at and below a key",
      arguments: [{ ...KEY, summary: "default: all", isOptional: true }],
      run: list,
    },
    { name: "get", isReading: true, summary: "write the value of an entry", arguments: [KEY], run: get },
    {
      name: "set",
      summary: "write an entry",
      arguments: [KEY, { name: "value", summary: "the value; absent with --file and --secret", isOptional: true }],
      flags: [
        {
          name: "file",
          short: "f",
          value: "path",
          summary: "read the value from a file; - is the standard input",
          completes: "files",
        },
        {
          name: "secret",
          summary: "seal the value, so that it is never shown again; it is asked for, or read from --file",
        },
        { name: "ttl", value: "seconds", summary: "time after which the entry expires" },
      ],
      examples: [
        "odp config set /matrix/etc/mail smtp.example.com",
        "odp config set /matrix/rules/load --file rule.txt",
      ],
      run: set,
    },
    { name: "remove", summary: "remove an entry, or a folder with all below it", arguments: [KEY], run: remove },
  ],
};

async function list(call: Call): Promise<void> {
  const { shell } = call;
  const key = call.optional("key");
  const client = await shell.client();
  const rows: object[] = [];
  const query = key === undefined ? {} : { key };
  for await (const { message } of client.pages("getConfigList", { query }, { signal: shell.ended() }))
    rows.push(...message);
  await shell.show(rows, VIEW);
}

/** The value alone as a text, and all of the entry in other formats. */
async function get(call: Call): Promise<void> {
  const { shell } = call;
  const key = call.text("key");
  const entry = await (await shell.client()).call("getConfigGet", { query: { key } }, { signal: shell.ended() });
  if (entry.value === undefined && entry.dir === true)
    throw new UsageError(`${key} is a folder. Run: odp config list ${key}`);
  await (shell.format === "table" && entry.value !== undefined ? shell.show(entry.value) : shell.show(entry, VIEW));
}

async function set(call: Call): Promise<void> {
  const { shell } = call;
  const ttl = call.number("ttl", { max: 3_153_600_000 });
  const value = await valueOf(call);
  const body = {
    key: call.text("key"),
    value,
    ...(ttl !== undefined && { ttl }),
    ...(call.is("secret") && { secret: true }),
  };
  await (await shell.client()).call("postConfigSet", { body }, { signal: shell.ended() });
}

/** The argument, the content of the file, or for a secret what is typed. */
async function valueOf(call: Call): Promise<string> {
  const [given, file, isSecret] = [call.optional("value"), call.optional("file"), call.is("secret")];
  if (given !== undefined && file !== undefined) throw new UsageError("Give one of the value and --file.");
  if (given !== undefined && isSecret)
    throw new UsageError("Other users of this machine see arguments: leave the secret out, and it is asked for.");
  if (file !== undefined) return (await call.shell.input(file)).toString("utf8").replace(/\r?\n$/, "");
  if (given === undefined && !isSecret) throw new UsageError("Give the value, or --file.");
  return given ?? call.shell.secret("Value: ");
}

async function remove(call: Call): Promise<void> {
  const { shell } = call;
  await (await shell.client()).call("postConfigDel", { body: { key: call.text("key") } }, { signal: shell.ended() });
}
