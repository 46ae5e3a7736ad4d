import type { Command } from "commander";
import type { OdpClient } from "../../../common/client/index.ts";
import type { Clock, Random } from "../../../common/time.ts";
import type { SyncResult } from "./execution.ts";
import { printable } from "./names.ts";
import { direction } from "./places.ts";
import { actionLines, isEventful, problemLines, ProgressLine, summary } from "./report.ts";
import { copyTree, syncOnce, syncWatching, type SyncEnvironment, type SyncRequest } from "./run.ts";
import { copyFile, listFolder, listingRows, moveEntry, removeEntry, showFile } from "./verbs.ts";

/** Parts of the program that the commands use. */
export interface CommandLine {
  client(): OdpClient;
  /** Fires at the first SIGINT or SIGTERM. */
  ended(): AbortSignal;
  /** Waits for a slow reader. Returns false if nothing can be written any more. */
  write(data: string | Uint8Array): Promise<boolean>;
  note(text: string): void;
  /** Writes an answer as JSON, or as a table. */
  show(answer: unknown): void;
  isJson(): boolean;
  /** Address of the controller, and the tenant. */
  controller(): string;
  readonly stderr: { readonly isTTY?: boolean; write(text: string): unknown };
  readonly clock: Clock;
  readonly random: Pick<Random, "next">;
  readonly platform: string;
  setExitCode(code: number): void;
}

interface SpaceWords {
  readonly system?: boolean;
}

interface TreeWords extends SpaceWords {
  readonly exclude?: readonly string[];
  readonly defaultExcludes: boolean;
}

interface SyncWords extends TreeWords {
  readonly watch?: boolean;
  readonly dryRun?: boolean;
  readonly delete?: boolean;
  readonly force?: boolean;
}

/** As a shell says of what SIGINT ended. */
const CANCELLED = 130;
const SYSTEM = ["--system", "the system's space of files, for administrators"] as const;
const EXIT_CODES =
  "(0: the target is as the source, 1: something failed, 2: conflicts, 3: entries were left out, 130: ended by a signal)";

/** Adds `odp fs` to the program. */
export function addFileCommands(program: Command, line: CommandLine): void {
  const files = program
    .command("fs")
    .description("synchronise, list, read, copy, move and remove files of the controller");
  addSync(files, line);
  addReading(files, line);
  addCopy(files, line);
  addChanges(files, line);
}

function addSync(files: Command, line: CommandLine): void {
  files
    .command("sync <from> <to>")
    .description(
      `make a folder as another one is, up (./scripts odp:/scripts) or down (odp:/scripts ./scripts), without undoing changes of others ${EXIT_CODES}`,
    )
    .option("--watch", "go on until Ctrl-C, after each change")
    .option("--dry-run", "only show what would be done")
    .option("--delete", "also remove what an earlier sync saw and <from> has no more")
    .option("--force", "<from> wins wherever both differ; with --delete, all that only <to> has is removed")
    .option(
      "--exclude <pattern>",
      "names, or paths below the folder, that are left alone on both sides; * is any text; may be repeated",
      collected,
    )
    .option("--no-default-excludes", "also .git, files of editors such as *.swp, and the like")
    .option(...SYSTEM)
    .action((from: string, to: string, words: SyncWords) =>
      syncing(line, (environment) => {
        const request = requestOf(from, to, words);
        return words.watch === true ? syncWatching(request, environment) : syncOnce(request, environment);
      }),
    );
}

function addReading(files: Command, line: CommandLine): void {
  files
    .command("ls [path]")
    .description("list a folder; the root if no path is given")
    .option(...SYSTEM)
    .action(async (path = "/", words: SpaceWords) => {
      const entries = await listFolder(path, optionsOf(line, words));
      if (line.isJson()) return line.show(entries);
      line.show(
        entries.length === 0
          ? "empty"
          : listingRows(entries.map((entry) => ({ ...entry, name: printable(entry.name) }))),
      );
    });
  files
    .command("cat <path>")
    .description("write the bytes of a file to the standard output")
    .option(...SYSTEM)
    .action((path: string, words: SpaceWords) =>
      showFile(path, { ...optionsOf(line, words), write: (bytes) => line.write(bytes) }),
    );
}

function addCopy(files: Command, line: CommandLine): void {
  files
    .command("cp <from> <to>")
    .description(
      `copy a file up (a.js odp:/scripts/) or down (odp:/scripts/a.js .), over one that is there; with -r all that is in a folder ${EXIT_CODES}`,
    )
    .option("-r, --recursive", "what is in the folder <from> into the folder <to>")
    .option("--exclude <pattern>", "with -r, as of odp fs sync", collected)
    .option("--no-default-excludes", "with -r, as of odp fs sync")
    .option(...SYSTEM)
    .action(async (from: string, to: string, words: TreeWords & { readonly recursive?: boolean }) => {
      if (words.recursive === true)
        return syncing(line, (environment) => copyTree(requestOf(from, to, { ...words, force: true }), environment));
      const { clock, platform } = line;
      const copied = await copyFile(from, to, { ...optionsOf(line, words), nowMs: () => clock.nowMs(), platform });
      if (line.isJson()) line.show(copied);
    });
}

function addChanges(files: Command, line: CommandLine): void {
  files
    .command("rm <path>")
    .description("remove a file")
    .option("-r, --recursive", "also a folder with all below it")
    .option(...SYSTEM)
    .action((path: string, words: SpaceWords & { readonly recursive?: boolean }) =>
      removeEntry(path, { ...optionsOf(line, words), isTree: words.recursive === true }),
    );
  files
    .command("mv <from> <to>")
    .description("give a file or folder of the controller a new path; into the folder <to> if that ends with a slash")
    .option(...SYSTEM)
    .action((from: string, to: string, words: SpaceWords) => moveEntry(from, to, optionsOf(line, words)));
}

/** Collects the values of an option that may be repeated. */
function collected(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function optionsOf(line: CommandLine, { system = false }: SpaceWords) {
  return { client: line.client(), isSystem: system, signal: line.ended() };
}

function requestOf(from: string, to: string, words: Omit<SyncWords, "watch">): SyncRequest {
  direction(from, to);
  return {
    from,
    to,
    isForced: words.force === true,
    isDeleting: words.delete === true,
    isDry: words.dryRun === true,
    isSystem: words.system === true,
    exclusion: { patterns: words.exclude ?? [], byDefault: words.defaultExcludes },
  };
}

/** Runs a sync, and tells its results: the answer on the standard output, all else on the standard error. */
async function syncing(line: CommandLine, run: (environment: SyncEnvironment) => Promise<number>): Promise<void> {
  const { clock, random, platform, stderr } = line;
  const progress = new ProgressLine(stderr, () => clock.monotonicMs());
  const signal = line.ended();
  const note = (text: string): void => {
    progress.clear();
    line.note(text);
  };
  const told = new Told(line, note);
  try {
    const code = await run({
      ...{ client: line.client(), controller: line.controller(), clock, random, platform, signal, note },
      progress: (done, of) => progress.show(done, of),
      told: (result) => told.tell(result),
    });
    line.setExitCode(code);
  } catch (error) {
    if (!signal.aborted) throw error;
    note("ended by a signal; what was done is kept in the state of the sync");
    line.setExitCode(CANCELLED);
  } finally {
    progress.clear();
  }
}

/** Tells results. A problem that stays is told once. */
class Told {
  readonly #line: CommandLine;
  readonly #note: (text: string) => void;
  #problems: ReadonlySet<string> = new Set();
  #isFirst = true;

  constructor(line: CommandLine, note: (text: string) => void) {
    this.#line = line;
    this.#note = note;
  }

  async tell(result: SyncResult): Promise<void> {
    const problems = problemLines(result);
    const isNew = this.#isFirst || problems.some((text) => !this.#problems.has(text)) || isChange(result);
    if (!isNew) return;
    if (this.#line.isJson()) await this.#line.write(`${JSON.stringify(result)}\n`);
    else if (result.dry)
      await this.#line.write(
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
