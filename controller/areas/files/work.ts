import { createHash } from "node:crypto";
import { AppError } from "../../../common/errors.ts";
import {
  FILE_WORK_ATTEMPTS,
  FILE_WORK_BATCH_MAX,
  FILE_WORK_PASSES_MAX,
  FILE_WORK_RETRY_MS,
} from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import type { Runtime } from "../../runtime.ts";
import { WorkRun } from "../../store/journal/index.ts";
import { systemPrincipal, type Principal } from "../permissions/index.ts";
import type { FileEntry, HeldContent } from "./entries.ts";
import type { HidingGuard } from "./hiding.ts";
import type { Change } from "./history/former.ts";
import type { Recovering } from "./history/recovering.ts";
import { parentOf, type Place } from "./names.ts";
import { changingIndexed, IndexedWrites, searchedDigests, type IndexKeeper } from "./search/keeper.ts";
import { replacedEntries, rowAt, type FileStore } from "./store.ts";
import { ALL_VISIBLE, type FileVisibility } from "./visible.ts";
import { requireWork, targetOf } from "./work-rights.ts";
import type { FileWorkEnd, FileWorkJournal, VersionedFileWork, OpenFileWork } from "./work-journal.ts";
import type { HeldWork } from "./versions/run.ts";
import type { KeptTreeWorks } from "./versions/work.ts";

export interface FileWorkDependencies {
  readonly journal: FileWorkJournal;
  readonly store: FileStore;
  readonly runtime: Runtime;
  /** The principal's view of files by its rules. */
  readonly visibilityOf: (principal: Principal) => Promise<FileVisibility>;
  readonly hiding: HidingGuard;
  /** Absent: contents are not searched. */
  readonly keeper?: IndexKeeper | undefined;
  readonly kept: KeptTreeWorks;
  readonly recovering: Recovering;
}

/**
 * Copies, moves and removes files, and folders with everything below them. A folder is processed before its content. So
 * an entry that is written into the folder meanwhile is either found later, or makes the folder again. The journal
 * names the current folder before that folder is processed.
 */
export class FileWorks {
  readonly #with: FileWorkDependencies;

  constructor(dependencies: FileWorkDependencies) {
    this.#with = dependencies;
  }

  /** Resolves with the work when it has ended or paused, or when another controller has taken it. */
  start(mine: VersionedFileWork): Promise<OpenFileWork> {
    const { journal, runtime } = this.#with;
    const running = journal.inFlight.carry([mine.open.id], () => new FileWorkRun(mine, this.#with).run());
    running.catch((error: unknown) =>
      runtime.log.error({ err: error, work: mine.open.id }, "work with files broke off"),
    );
    return running;
  }

  /**
   * Continues abandoned work. Call it periodically and when a controller has left. Several controllers may call it at
   * once.
   */
  async maintain(tenant: string): Promise<void> {
    const { journal } = this.#with;
    for await (const found of journal.abandoned(tenant)) {
      const mine = await journal.take(found);
      if (mine) void this.start(mine).catch(() => undefined);
    }
  }
}

/** One run of a copy, move or removal, or of work with a kept tree. */
class FileWorkRun {
  readonly #with: FileWorkDependencies;
  readonly #platform: Principal;
  readonly #run: WorkRun<OpenFileWork>;
  #visibility = ALL_VISIBLE;

  constructor(held: VersionedFileWork, dependencies: FileWorkDependencies) {
    const { tenant, ospace, traceparent, user } = held.open;
    const { journal, runtime } = dependencies;
    const { clock } = runtime;
    this.#with = dependencies;
    this.#run = new WorkRun(held, { journal, clock, attempts: FILE_WORK_ATTEMPTS, retryMs: FILE_WORK_RETRY_MS });
    this.#platform = { ...systemPrincipal(tenant, ospace, traceparent), user };
  }

  /** Returns the work as it is when it has ended, has paused, or was taken by another controller. */
  run(): Promise<OpenFileWork> {
    return this.#run.run(() => this.#carry());
  }

  get #open(): OpenFileWork {
    return this.#run.open;
  }

  get #signal(): AbortSignal {
    return this.#run.signal;
  }

  /**
   * Processes the recorded folder, then each folder above it, up to `from`. A copy removes nothing, so it starts again
   * at `from`.
   */
  async #carry(): Promise<FileWorkEnd> {
    const { from, at, to, kind, space, rules, kept } = this.#open;
    if (rules) this.#visibility = await this.#with.visibilityOf({ ...this.#platform, data: rules });
    if (kept) return { message: "", changed: await this.#with.kept.carry(this.#heldWork()) };
    if (kind === "recover") return { message: "", changed: await this.#with.recovering.carry(this.#heldWork()) };
    await this.#releaseReplaced();
    if (to !== undefined) await this.#with.store.makeFoldersAbove(this.#platform, { space, fullname: to });
    await this.#pass([{ space, fullname: from }]);
    let folder = kind === "copy" ? from : at;
    for (;;) {
      await this.#empty({ space, fullname: folder });
      if (folder === from) return { message: "" };
      folder = parentOf(folder);
    }
  }

  /** Processes everything in the folder and below it. */
  async #empty(folder: Place): Promise<void> {
    for (let pass = 0; pass < FILE_WORK_PASSES_MAX; pass++) {
      const folders = await this.#passFiles(folder);
      if (folders === undefined) return;
      for (const below of folders) {
        await this.#note(below.fullname);
        await this.#pass([below]);
        await this.#empty(below);
      }
      if (this.#open.kind === "copy") return;
    }
    throw new AppError("conflict", `${folder.fullname} is written to all the time: stop that, and begin again.`);
  }

  /** Processes the files of the folder. Returns its folders; `undefined` if the folder is empty. */
  async #passFiles(folder: Place): Promise<readonly Place[] | undefined> {
    const folders: Place[] = [];
    let isEmpty = true;
    for await (const page of this.#with.store.in(this.#platform, folder, this.#signal)) {
      isEmpty = false;
      const files = page.filter(({ content }) => content !== undefined);
      for (let from = 0; from < files.length; from += FILE_WORK_BATCH_MAX)
        await this.#pass(files.slice(from, from + FILE_WORK_BATCH_MAX));
      for (const { content, space, fullname } of page) if (!content) folders.push({ space, fullname });
    }
    return isEmpty ? undefined : folders;
  }

  /** Processes just these entries. Entries that no longer exist are skipped, so a repetition does no harm. */
  async #pass(places: readonly Place[]): Promise<void> {
    this.#signal.throwIfAborted();
    const { store } = this.#with;
    if (this.#open.kind === "copy") {
      const entries = (await store.get(this.#platform, places)).filter((entry) => entry !== undefined);
      await this.#requireNothingHidden(entries);
      return this.#put(entries);
    }
    const { entries, take } = await store.toTake(this.#platform, places, this.#removal());
    await this.#require(entries);
    if (this.#open.kind === "move") await this.#put(entries);
    await new IndexedWrites(store, this.#with.keeper).take(this.#platform, { entries, take });
  }

  /** The history keeps what is removed, and not what is moved. */
  #removal(): Change | undefined {
    const { kind, id, startedMs, from } = this.#open;
    return kind === "remove" ? { cause: "removed", atMs: startedMs, removal: id, top: from } : undefined;
  }

  /**
   * `AppError("denied")` for an entry that the caller may not move or remove, such as one added after the start. The
   * entry stays. Its folders may already be moved or removed, so they are made again.
   */
  async #require(entries: readonly FileEntry[]): Promise<void> {
    try {
      for (const entry of entries) requireWork(this.#open, this.#visibility, entry);
      await this.#requireNothingHidden(entries);
    } catch (error) {
      // All entries are in one folder.
      const [first] = entries;
      if (first) await this.#with.store.makeFoldersAbove(this.#platform, first);
      throw error;
    }
  }

  async #requireNothingHidden(entries: readonly FileEntry[]): Promise<void> {
    if (this.#open.hidesNothing) await this.#with.hiding.requireEntries(this.#platform, this.#open, entries);
  }

  async #put(entries: readonly FileEntry[]): Promise<void> {
    const { store } = this.#with;
    const targets = entries.map((entry) => targetOf(this.#open, entry));
    const formers = await store.get(this.#platform, targets);
    // An existing folder stays unchanged.
    const put = entries.flatMap((entry, at) => {
      const [target, former] = [targets[at], formers[at]];
      if (this.#open.kind === "copy") requireWork(this.#open, this.#visibility, entry, former);
      if (former && !former.content !== !entry.content) throw otherKind(former);
      if (!target || (former && !entry.content)) return [];
      return [{ target, entry, former, content: entry.content && this.#newContent(entry, entry.content) }];
    });
    if (put.length === 0) return;
    await store.mark(
      this.#platform,
      put.flatMap(({ content }) => content ?? []),
    );
    const searched = put.filter(({ entry, former }) => entry.indexed || former?.indexed);
    const change = {
      space: this.#open.space,
      paths: searched.map(({ target }) => target.fullname),
      lost: searchedDigests(put.map(({ former }) => former)),
    };
    const replaced = put.flatMap(({ target: { fullname }, former, content }) =>
      former?.content && !isSame(former.content, content) ? [{ fullname, ...former.content }] : [],
    );
    if (replaced.length > 0) await this.#run.step({ replaced });
    const rows = put.map(({ target, entry, content }) => this.#row(target, entry, content));
    await store.keep(this.#platform, replacedEntries(put), { cause: "replaced", atMs: this.#open.startedMs });
    const write = (): Promise<void> => store.insert(this.#platform, rows);
    await changingIndexed(this.#with.keeper, this.#platform, { change, write });
    await store.release(this.#platform, replaced);
  }

  /** Releases the contents that an earlier attempt has replaced, if it ended before it released them. */
  async #releaseReplaced(): Promise<void> {
    const { replaced = [], space } = this.#open;
    if (replaced.length === 0) return;
    const { store } = this.#with;
    const found = await store.get(
      this.#platform,
      replaced.map(({ fullname }) => ({ space, fullname })),
    );
    const loose = replaced.filter((content, at) => !isSame(content, found[at]?.content));
    await store.release(this.#platform, loose);
  }

  /** A copy is owned by the user who makes it. */
  #row(target: Place, entry: FileEntry, content: HeldContent | undefined): Row {
    const { kind, user } = this.#open;
    return rowAt(target, kind === "copy" ? { ...entry, owner: user } : entry, content);
  }

  /** The mark is the same in every attempt, so that no attempt leaves a mark behind. */
  #newContent({ fullname }: FileEntry, { digest }: HeldContent): HeldContent {
    const mark = createHash("sha256").update(`${this.#open.id} ${fullname}`).digest("base64url");
    return { digest, mark: `file/${mark}` };
  }

  #heldWork(): HeldWork {
    const { journal } = this.#with;
    const open = (): OpenFileWork => this.#open;
    return {
      get open() {
        return open();
      },
      platform: this.#platform,
      visibility: this.#visibility,
      signal: this.#signal,
      step: (kept, beside = []) => this.#run.write((held) => journal.stepBeside(held, { kept }, beside)),
    };
  }

  async #note(at: string): Promise<void> {
    if (this.#open.kind === "copy") return;
    await this.#run.step({ at });
  }
}

function otherKind({ fullname, content }: FileEntry): AppError {
  const [is, comes] = content ? ["file", "folder"] : ["folder", "file"];
  return new AppError("conflict", `${fullname} is a ${is}, and a ${comes} was to come there.`);
}

function isSame(one: HeldContent, other: HeldContent | undefined): boolean {
  return one.digest === other?.digest && one.mark === other.mark;
}
