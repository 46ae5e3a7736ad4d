import { mapLimited } from "../../../../common/concurrency.ts";
import { isAppError } from "../../../../common/errors.ts";
import {
  FILE_INDEX_FILES_AT_ONCE,
  FILE_INDEX_NAMED_MAX,
  FILE_INDEX_READS_MAX,
  FILE_INDEX_STEP_FILES,
  FILE_WORK_ATTEMPTS,
  FILE_WORK_RETRY_MS,
} from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import { isTransient } from "../../../store/journal/index.ts";
import { systemPrincipal, type Principal } from "../../permissions/index.ts";
import type { FileEntry } from "../entries.ts";
import type { Place } from "../names.ts";
import type { FileStore } from "../store.ts";
import { ALL_VISIBLE, type FileVisibility } from "../visible.ts";
import { Unreadable, type Extractions } from "./extractions.ts";
import {
  NO_PROGRESS,
  type IndexingEnd,
  type IndexJournal,
  type OpenIndexing,
  type VersionedIndexing,
} from "./journal.ts";
import { mayInclude } from "./rights.ts";
import type { ContentStore } from "./store.ts";

export interface IndexWorkDependencies {
  readonly journal: IndexJournal;
  readonly files: FileStore;
  readonly contents: ContentStore;
  readonly extractions: Extractions;
  readonly runtime: Runtime;
  readonly visibilityOf: (principal: Principal) => Promise<FileVisibility>;
}

/** Thrown if another controller has taken the work. */
class Lost extends Error {}

/** One run of journaled indexing by this controller. */
export class IndexingRun {
  readonly #with: IndexWorkDependencies;
  readonly #platform: Principal;
  #visibility = ALL_VISIBLE;
  #held: VersionedIndexing;
  #progress = NO_PROGRESS;

  constructor(held: VersionedIndexing, dependencies: IndexWorkDependencies) {
    const { tenant, ospace, traceparent, user } = held.open;
    this.#with = dependencies;
    this.#held = held;
    this.#platform = { ...systemPrincipal(tenant, ospace, traceparent), user };
  }

  /** Returns the work as it is when it has ended, has paused, or was taken by another controller. */
  async run(): Promise<OpenIndexing> {
    const { journal } = this.#with;
    try {
      if (!this.#open.end) {
        const end = await this.#carry();
        this.#keep(await journal.decide(this.#held, end));
      }
      await journal.end(this.#open);
    } catch (error) {
      if (!(error instanceof Lost) && !isTransient(error)) throw error;
    }
    return this.#open;
  }

  get #open(): OpenIndexing {
    return this.#held.open;
  }

  get #signal(): AbortSignal {
    return this.#with.journal.inFlight.stopping;
  }

  async #carry(): Promise<IndexingEnd> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#carryOnce(attempt > 1 || this.#open.attempt > 0);
        return { message: "" };
      } catch (error) {
        if (!isAppError(error)) throw error;
        if (!isTransient(error)) return { code: error.code, message: error.message };
        if (this.#signal.aborted || attempt >= FILE_WORK_ATTEMPTS) throw error;
        await wait(this.#with.runtime.clock, FILE_WORK_RETRY_MS * attempt, this.#signal);
      }
    }
  }

  async #carryOnce(isRepeated: boolean): Promise<void> {
    const { space, from, paths, lost, rules } = this.#open;
    this.#progress = NO_PROGRESS;
    if (rules) this.#visibility = await this.#with.visibilityOf({ ...this.#platform, data: rules });
    if (from !== undefined) await this.#includeTree({ space, fullname: from });
    for (const fullname of paths) await this.#index({ space, fullname });
    for (const digest of lost) await this.#forget(digest, isRepeated);
    await this.#step();
  }

  /** Includes the file, or all files below the folder, and indexes each. Files that the caller may not include are skipped. */
  async #includeTree(place: Place): Promise<void> {
    const entry = place.fullname === "/" ? undefined : await this.#with.files.find(this.#platform, place);
    if (entry?.content) return this.#include(entry);
    const folders: Place[] = [];
    for await (const page of this.#with.files.in(this.#platform, place, this.#signal)) {
      for (const { content, space, fullname } of page) if (!content) folders.push({ space, fullname });
      const files = page.filter(({ content }) => content !== undefined);
      for (let at = 0; at < files.length; at += FILE_INDEX_STEP_FILES) {
        const some = files.slice(at, at + FILE_INDEX_STEP_FILES);
        await mapLimited(some, FILE_INDEX_FILES_AT_ONCE, (file) => this.#include(file));
        await this.#step();
      }
    }
    for (const folder of folders) await this.#includeTree(folder);
  }

  async #include(entry: FileEntry): Promise<void> {
    this.#signal.throwIfAborted();
    if (!mayInclude(this.#visibility, entry)) return;
    if (!entry.indexed) await this.#with.contents.include(this.#platform, entry, true);
    await this.#index(entry);
  }

  async #step(): Promise<void> {
    this.#keep(await this.#with.journal.step(this.#held, { progress: this.#progress }));
  }

  /** Indexes the present content of a file. A file that is not searched, or no longer there, is skipped. */
  async #index(place: Place): Promise<void> {
    let last: string | undefined;
    for (let read = 0; read < FILE_INDEX_READS_MAX; read++) {
      const entry = await this.#with.files.find(this.#platform, place);
      if (!entry?.content || !entry.indexed || entry.content.digest === last) return;
      last = entry.content.digest;
      await this.#indexContent(entry, last);
    }
  }

  async #indexContent(entry: FileEntry, digest: string, isForced = false): Promise<void> {
    const { contents, extractions } = this.#with;
    const [known] = await contents.states(this.#platform, [digest]);
    const isKnown = !isForced && known?.isCurrent && (known.state === "indexed" || !this.#retries);
    if (isKnown && known.state !== "indexing") return this.#count(entry, known.reason);
    const { tenant } = this.#platform;
    const found = await extractions.extract({ tenant, digest, size: entry.size, signal: this.#signal });
    if (found instanceof Unreadable) await contents.refuse(this.#platform, digest, found.reason);
    else await contents.keep(this.#platform, digest, found);
    this.#count(entry, found instanceof Unreadable ? found.reason : (found.note ?? ""));
  }

  /** A request tries contents again that could not be read before. */
  get #retries(): boolean {
    return this.#open.from !== undefined;
  }

  #count({ fullname }: FileEntry, reason: string): void {
    const { indexed, unindexed, named } = this.#progress;
    if (reason === "") this.#progress = { indexed: indexed + 1, unindexed, named };
    else {
      const more = named.length < FILE_INDEX_NAMED_MAX ? [...named, `${fullname}: ${reason}`] : named;
      this.#progress = { indexed, unindexed: unindexed + 1, named: more };
    }
  }

  /**
   * Removes the passages of a content that no searched file has. A file may get this content meanwhile, and its work may
   * have found the passages before they were removed. So the files are read again afterwards.
   */
  async #forget(digest: string, isRepeated: boolean): Promise<void> {
    const remove = await this.#with.contents.toRemove(this.#platform, digest);
    const before = await this.#fileWith(digest);
    if (before && !isRepeated) return;
    if (!before) await remove?.();
    const after = before ?? (await this.#fileWith(digest));
    // An earlier attempt may have removed a part of the passages of this file.
    if (after) await this.#indexContent(after, digest, true);
  }

  async #fileWith(digest: string): Promise<FileEntry | undefined> {
    for await (const [first] of this.#with.contents.filesOf(this.#platform, [digest], this.#signal))
      if (first) return first;
    return undefined;
  }

  #keep(changed: VersionedIndexing | undefined): void {
    if (!changed) throw new Lost();
    this.#held = changed;
  }
}
