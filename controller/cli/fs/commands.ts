import { tmpdir } from "node:os";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration, FlagDeclaration } from "../declared/declaration.ts";
import type { Shell } from "../declared/shell.ts";
import { tenantOf } from "../contexts/access.ts";
import { CANCELLED } from "../failure.ts";
import { column, type View } from "../formats/columns.ts";
import { editFile } from "./edit.ts";
import { editorOf, runEditor } from "./editor.ts";
import type { SyncResult } from "./execution.ts";
import { direction } from "./places.ts";
import { actionLines, isEventful, problemLines, ProgressLine, summary } from "./report.ts";
import { copyTree, syncOnce, syncWatching, type SyncEnvironment, type SyncRequest } from "./run.ts";
import { copyFile, listFolder, moveEntry, removeEntry, showFile } from "./verbs.ts";

const SYSTEM: FlagDeclaration = { name: "system", summary: "the system's space of files, for administrators" };
const EXCLUDING: readonly FlagDeclaration[] = [
  {
    name: "exclude",
    value: "pattern",
    summary: "names, or paths below the folder, that are left alone on both sides; * is any text; may be repeated",
    isRepeated: true,
  },
  { name: "no-default-excludes", summary: "also .git, files of editors such as *.swp, and the like" },
];
const EXIT_CODES = {
  0: "the target is as the source",
  1: "something failed",
  2: "conflicts",
  3: "entries were left out",
};
const LISTING: View = {
  name: "name",
  columns: [
    { name: "name", of: ({ name, isdir }) => (isdir === true ? `${String(name)}/` : name) },
    { name: "bytes", of: ({ size, isdir }) => (isdir === true ? "" : size) },
    column("changed", { member: "mtime", isTime: true }),
    column("owner"),
    column("digest", { isWide: true }),
    column("revision", { isWide: true }),
  ],
};

/** `odp fs` */
export const FILE_COMMANDS: CommandDeclaration = {
  name: "fs",
  summary: "synchronise, list, read, copy, move and remove files of the controller",
  commands: [
    {
      name: "sync",
      summary: "make a folder as another one is, without undoing changes of others",
      details:
        "One of the two is a folder of the controller, which begins with odp:. The order of the two is the direction.",
      arguments: [
        { name: "from", summary: "folder to read", completes: "folders" },
        { name: "to", summary: "folder to change", completes: "folders" },
      ],
      flags: [
        { name: "watch", summary: "go on until Ctrl-C, after each change" },
        { name: "dry-run", summary: "only show what would be done" },
        { name: "delete", summary: "also remove what an earlier sync saw and <from> has no more" },
        {
          name: "force",
          summary: "<from> wins wherever both differ; with --delete, all that only <to> has is removed",
        },
        ...EXCLUDING,
        SYSTEM,
      ],
      exitCodes: EXIT_CODES,
      examples: ["odp fs sync ./scripts odp:/scripts", "odp fs sync odp:/scripts ./scripts --dry-run"],
      run: (call) =>
        syncing(call.shell, (environment) => {
          const request = requestOf(call, { isForced: call.is("force") });
          return call.is("watch") ? syncWatching(request, environment) : syncOnce(request, environment);
        }),
    },
    {
      name: "ls",
      isReading: true,
      summary: "list a folder; the root if no path is given",
      arguments: [{ name: "path", summary: "folder of the controller", isOptional: true }],
      flags: [SYSTEM],
      run: list,
    },
    {
      name: "cat",
      summary: "write the bytes of a file to the standard output",
      arguments: [{ name: "path", summary: "file of the controller" }],
      flags: [SYSTEM],
      run: async (call) =>
        showFile(call.text("path"), { ...(await optionsOf(call)), write: (bytes) => call.shell.write(bytes) }),
    },
    {
      name: "edit",
      summary: "change a file of the controller in your editor, or make a new one",
      details:
        "Opens a private copy in $VISUAL, $EDITOR or vi. It is written back if you changed it, and only over the version that you saw. If that fails, your copy is kept, and its name is shown.",
      arguments: [{ name: "path", summary: "file of the controller" }],
      flags: [SYSTEM],
      examples: ["odp fs edit odp:/scripts/a.js", "EDITOR='code --wait' odp fs edit /scripts/a.js"],
      run: edit,
    },
    {
      name: "cp",
      summary: "copy a file up or down, over one that is there; with -r all that is in a folder",
      arguments: [
        { name: "from", summary: "file or folder to read", completes: "files" },
        { name: "to", summary: "file or folder to write", completes: "files" },
      ],
      flags: [
        { name: "recursive", short: "r", summary: "what is in the folder <from> into the folder <to>" },
        ...EXCLUDING,
        SYSTEM,
      ],
      exitCodes: EXIT_CODES,
      examples: ["odp fs cp a.js odp:/scripts/", "odp fs cp odp:/scripts/a.js ."],
      run: copy,
    },
    {
      name: "rm",
      summary: "remove a file",
      arguments: [{ name: "path", summary: "file of the controller" }],
      flags: [{ name: "recursive", short: "r", summary: "also a folder with all below it" }, SYSTEM],
      run: async (call) => removeEntry(call.text("path"), { ...(await optionsOf(call)), isTree: call.is("recursive") }),
    },
    {
      name: "mv",
      summary: "give a file or folder of the controller a new path",
      arguments: [
        { name: "from", summary: "path of the controller" },
        { name: "to", summary: "its new path, or the folder for it if that ends with a slash" },
      ],
      flags: [SYSTEM],
      run: async (call) => moveEntry(call.text("from"), call.text("to"), await optionsOf(call)),
    },
  ],
};

async function list(call: Call): Promise<void> {
  const { shell } = call;
  const entries = await listFolder(call.optional("path") ?? "/", await optionsOf(call));
  await shell.show(entries, LISTING);
}

async function copy(call: Call): Promise<number | void> {
  const { shell } = call;
  if (call.is("recursive"))
    return syncing(shell, (environment) => copyTree(requestOf(call, { isForced: true }), environment));
  const { clock, platform } = shell;
  const places = { ...(await optionsOf(call)), nowMs: () => clock.nowMs(), platform };
  const copied = await copyFile(call.text("from"), call.text("to"), places);
  if (shell.format === "json") await shell.show(copied);
}

async function edit(call: Call): Promise<void> {
  const { shell } = call;
  const path = call.text("path");
  const { environment } = shell;
  const editor = (file: string) => shell.undisturbed(() => runEditor(editorOf(environment), file, environment));
  const isWritten = await editFile(path, { ...(await optionsOf(call)), temporary: tmpdir(), editor });
  shell.note(isWritten ? `${path} is written.` : `${path} was not changed.`);
}

async function optionsOf(call: Call) {
  return { client: await call.shell.client(), isSystem: call.is("system"), signal: call.shell.ended() };
}

function requestOf(call: Call, { isForced }: Pick<SyncRequest, "isForced">): SyncRequest {
  const [from, to] = [call.text("from"), call.text("to")];
  direction(from, to);
  return {
    from,
    to,
    isForced,
    isDeleting: call.is("delete"),
    isDry: call.is("dry-run"),
    isSystem: call.is("system"),
    exclusion: { patterns: call.list("exclude"), byDefault: !call.is("no-default-excludes") },
  };
}

/** Runs a sync, and tells its results: the answer on the standard output, all else on the standard error. */
async function syncing(shell: Shell, run: (environment: SyncEnvironment) => Promise<number>): Promise<number> {
  const { clock, random, platform, stderr } = shell;
  const progress = new ProgressLine(stderr, () => clock.monotonicMs());
  const access = await shell.access();
  const signal = shell.ended();
  const note = (text: string): void => {
    progress.clear();
    shell.note(text);
  };
  const told = new Told(shell, note);
  try {
    return await run({
      ...{ client: await shell.client(), clock, random, platform, signal, note },
      controller: `${access.url.replace(/\/+$/, "")} ${tenantOf(access)}`,
      progress: (done, of) => progress.show(done, of),
      told: (result) => told.tell(result),
    });
  } catch (error) {
    if (!signal.aborted) throw error;
    note("ended by a signal; what was done is kept in the state of the sync");
    return CANCELLED;
  } finally {
    progress.clear();
  }
}

/** Tells results. A problem that stays is told once. */
class Told {
  readonly #shell: Shell;
  readonly #note: (text: string) => void;
  #problems: ReadonlySet<string> = new Set();
  #isFirst = true;

  constructor(shell: Shell, note: (text: string) => void) {
    this.#shell = shell;
    this.#note = note;
  }

  async tell(result: SyncResult): Promise<void> {
    const problems = problemLines(result);
    const isNew = this.#isFirst || problems.some((text) => !this.#problems.has(text)) || isChange(result);
    if (!isNew) return;
    if (this.#shell.format === "json") await this.#shell.write(`${JSON.stringify(result)}\n`);
    else if (result.dry)
      await this.#shell.write(
        actionLines(result)
          .map((text) => `${text}\n`)
          .join(""),
      );
    for (const text of problems) if (!this.#problems.has(text)) this.#note(text);
    this.#note(summary(result));
    this.#problems = new Set(problems);
    this.#isFirst = false;
  }
}

function isChange(result: SyncResult): boolean {
  return isEventful({ ...result, conflicts: [], leftOut: [], failed: [] });
}
