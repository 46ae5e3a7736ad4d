import type { OdpClient, RequestOf } from "../../../common/client/index.ts";
import { mapLimited } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import { CLI_CALLS_AT_ONCE } from "../../../common/limits.ts";
import { suggestion } from "../../../common/text/nearest.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { column, isRow, type View } from "../formats/columns.ts";
import { DEFINITION_FILE, definitionsIn, fileText, replacing, resultsOf, storeEach } from "./definitions.ts";
import { LOG_FLAGS, showLog } from "./logs.ts";
import { CLASS } from "./words.ts";

type Definition = RequestOf<"putMxobjectTrigger">["body"];

/** A trigger in the form in which it can be stored again. */
interface Trigger {
  readonly class: string;
  readonly name: string;
  readonly attr: {
    readonly disable?: string;
    readonly before?: string;
    readonly level?: string;
    readonly language?: string;
  };
  readonly script: string;
  readonly revision: string;
}

const VIEW: View = {
  name: "name",
  columns: [
    column("class"),
    column("trigger", { member: "name", isWhole: true }),
    column("runs", {
      of: ({ attr }) => (isTrue((attr as Trigger["attr"]).before) ? "before a write" : "after a write"),
    }),
    column("enabled", { of: ({ attr }) => (isTrue((attr as Trigger["attr"]).disable) ? "no" : "yes") }),
    column("level", { of: ({ attr }) => (attr as Trigger["attr"]).level }),
    column("language", { of: ({ attr }) => (attr as Trigger["attr"]).language }),
    column("script", { isWide: true }),
  ],
};
const TRIGGER = { name: "trigger", summary: "name of the trigger" } as const;

/** `odp trigger` */
export const TRIGGER_COMMANDS: CommandDeclaration = {
  name: "trigger",
  summary: "list, store and remove triggers: scripts that run before and after writes",
  commands: [
    {
      name: "list",
      isReading: true,
      summary: "list the triggers of a class, or of all classes",
      arguments: [{ ...CLASS, summary: "path of the class; default: all", isOptional: true }],
      run: list,
    },
    { name: "show", isReading: true, summary: "write the script of a trigger", arguments: [CLASS, TRIGGER], run: show },
    {
      name: "apply",
      summary: "store a trigger by its script, or triggers by their definitions",
      details:
        "With a class and a name, the file is the script. Without them it is the JSON of one definition or of a list, as odp trigger show -o json writes it. A trigger that was changed by another user meanwhile is not replaced. It runs with your rights.",
      arguments: [
        { ...CLASS, isOptional: true },
        { ...TRIGGER, isOptional: true },
      ],
      flags: [
        DEFINITION_FILE,
        { name: "before", summary: "run before a write, which the script may change or refuse; default: after it" },
        { name: "level", value: "n", summary: "triggers run from the lowest level to the highest" },
        {
          name: "language",
          value: "language",
          summary: "default: Lua, unless the first line says otherwise",
          choices: ["lua", "javascript"],
        },
        { name: "disabled", summary: "store it without running it" },
      ],
      examples: ["odp trigger apply /acme/log check -f check.lua --before", "odp trigger apply -f triggers.json"],
      run: apply,
    },
    { name: "remove", summary: "remove a trigger", arguments: [CLASS, TRIGGER], run: remove },
    {
      name: "log",
      summary: "show what a trigger wrote, and why its runs failed",
      arguments: [CLASS, TRIGGER],
      flags: LOG_FLAGS,
      run: log,
    },
  ],
};

function isTrue(value: unknown): boolean {
  return String(value).toLowerCase() === "true";
}

async function triggersOf(client: OdpClient, path: string, signal: AbortSignal): Promise<readonly Trigger[]> {
  const answered = await client.call("getMxobjectTrigger", { query: { class: path } }, { signal });
  return answered.flatMap(({ script, attr, revision, class: of }) =>
    Object.keys(script).map((name) => ({
      class: of,
      name,
      attr: JSON.parse(attr[name] ?? "{}") as Trigger["attr"],
      script: script[name] ?? "",
      revision: revision[name] ?? "",
    })),
  );
}

async function list(call: Call): Promise<void> {
  const { shell } = call;
  const [client, signal] = [await shell.client(), shell.ended()];
  const only = call.optional("class");
  const paths =
    only === undefined
      ? (await client.call("getMxobjectSchemaClassTree", {}, { signal })).map(({ name }) => name)
      : [only];
  const found = await mapLimited(paths, CLI_CALLS_AT_ONCE, (path) => triggersOf(client, path, signal));
  await shell.show(found.flat(), VIEW);
}

/** The script alone as a text, and the definition in other formats. */
async function show(call: Call): Promise<void> {
  const { shell } = call;
  const trigger = await triggerNamed(await shell.client(), call, shell.ended());
  await (shell.format === "table" ? shell.show(trigger.script) : shell.show(trigger, VIEW));
}

async function triggerNamed(client: OdpClient, call: Call, signal: AbortSignal): Promise<Trigger> {
  const [path, name] = [call.text("class"), call.text("trigger")];
  const triggers = await triggersOf(client, path, signal);
  const found = triggers.find((one) => one.name === name);
  if (found !== undefined) return found;
  const known = triggers.map((one) => one.name);
  throw new AppError(
    "not_found",
    `${path} has no trigger ${name}${suggestion(name, known)} Run: odp trigger list ${path}`,
  );
}

async function apply(call: Call): Promise<void> {
  const { shell } = call;
  const definitions = await given(call);
  const [client, signal] = [await shell.client(), shell.ended()];
  const view = resultsOf("class", "name");
  await storeEach(call, {
    definitions,
    view: { ...view, name: "name" },
    async store(body) {
      const before = (await triggersOf(client, body.class, signal)).find(({ name }) => name === body.name);
      const { condition, result } = replacing(before?.revision);
      await client.call("putMxobjectTrigger", { body }, { ...condition, signal });
      return { class: body.class, name: body.name, result };
    },
  });
}

/** The definitions of the file, or the one of class, name and script. */
async function given(call: Call): Promise<readonly Definition[]> {
  const [path, name] = [call.optional("class"), call.optional("trigger")];
  const attr = attributesOf(call);
  if (path !== undefined && name === undefined)
    throw new UsageError(`Name the trigger: odp trigger apply ${path} <trigger> -f <script>`);
  if (path !== undefined && name !== undefined) return [{ class: path, name, script: await fileText(call), attr }];
  if (Object.keys(attr).length > 0)
    throw new UsageError("Without a class and a name, the attributes are in the definitions: leave these options out.");
  const definitions = await definitionsIn(call, ["class", "name", "script"]);
  return definitions.map(({ class: at, name: of, script, attr: given }) => ({
    ...({ class: at, name: of, script } as Definition),
    ...(isRow(given) && { attr: given }),
  }));
}

function attributesOf(call: Call): NonNullable<Definition["attr"]> {
  const [level, language] = [call.optional("level"), call.optional("language")];
  if (level !== undefined && !/^-?\d{1,6}$/.test(level))
    throw new UsageError(`--level takes a whole number, not ${level}.`);
  return {
    ...(call.is("before") && { before: "true" }),
    ...(call.is("disabled") && { disable: "true" }),
    ...(level !== undefined && { level }),
    ...(language !== undefined && { language }),
  };
}

async function remove(call: Call): Promise<void> {
  const { shell } = call;
  const [client, signal] = [await shell.client(), shell.ended()];
  const { class: path, name, revision } = await triggerNamed(client, call, signal);
  await client.call("deleteMxobjectTrigger", { query: { class: path, name } }, { signal, ifMatch: revision });
}

function log(call: Call): Promise<number | void> {
  return showLog(call, { kind: "trigger", name: `${call.text("class")}#${call.text("trigger")}` });
}
