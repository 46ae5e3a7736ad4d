import { mapLimited, oneAhead } from "../../../../common/concurrency.ts";
import {
  FILE_INDEX_NAMED_MAX,
  FILE_INDEX_STEP_FILES,
  FILE_WORK_ATTEMPTS,
  FILE_WORK_RETRY_MS,
} from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import { WorkRun, type Attempt } from "../../../store/journal/index.ts";
import { systemPrincipal, type Principal } from "../../permissions/index.ts";
import type { FileEntry } from "../entries.ts";
import type { Place } from "../names.ts";
import type { FileStore } from "../store.ts";
import { ALL_VISIBLE, type FileVisibility } from "../visible.ts";
import { ContentIndexing, type IndexPart } from "./content-indexing.ts";
import type { Extractions } from "./extractions.ts";
import { NO_PROGRESS, type IndexJournal, type OpenIndexing, type VersionedIndexing } from "./journal.ts";
import { mayInclude } from "./rights.ts";
import type { ContentStore, SearchedFile } from "./store.ts";

export interface IndexWorkDependencies {
  readonly journal: IndexJournal;
  readonly files: FileStore;
  readonly contents: ContentStore;
  readonly extractions: Extractions;
  readonly runtime: Runtime;
  readonly visibilityOf: (principal: Principal) => Promise<FileVisibility>;
}

/** One run of journaled indexing. */
export class IndexingRun {
  readonly #with: IndexWorkDependencies;
  readonly #platform: Principal;
  readonly #run: WorkRun<OpenIndexing>;
  readonly #indexing: ContentIndexing;
  #visibility = ALL_VISIBLE;
  #progress = NO_PROGRESS;

  constructor(held: VersionedIndexing, dependencies: IndexWorkDependencies) {
    const { tenant, ospace, traceparent, user, from } = held.open;
    const { journal, runtime } = dependencies;
    const { clock } = runtime;
    this.#with = dependencies;
    this.#platform = { ...systemPrincipal(tenant, ospace, traceparent), user };
    this.#run = new WorkRun(held, { journal, clock, attempts: FILE_WORK_ATTEMPTS, retryMs: FILE_WORK_RETRY_MS });
    this.#indexing = new ContentIndexing(this.#platform, {
      ...dependencies,
      signal: this.#run.signal,
      // A request tries contents again that could not be read before.
      isRetrying: from !== undefined,
      indexed: (file, reason) => this.#count(file, reason),
    });
  }

  /** Returns the work as it is when it has ended, has paused, or was taken by another controller. */
  run(): Promise<OpenIndexing> {
    return this.#run.run(async (attempt) => {
      await this.#carry(attempt);
      return { message: "" };
    });
  }

  async #carry(attempt: Attempt): Promise<void> {
    const { space, from, paths, lost, rules } = this.#run.open;
    this.#progress = NO_PROGRESS;
    if (rules) this.#visibility = await this.#with.visibilityOf({ ...this.#platform, data: rules });
    const places = paths.map((fullname) => ({ space, fullname }));
    const batches = from === undefined ? inBatches(places) : this.#included({ space, fullname: from });
    for await (const part of oneAhead(this.#parts(batches, attempt))) {
      const meanwhile = await this.#indexing.keep(part, attempt);
      // The work of the change that made them lost may have ended before their texts were stored.
      for (const digest of meanwhile) await this.#forget(digest, attempt);
      await this.#step();
    }
    for (const digest of lost) await this.#forget(digest, attempt);
  }

  async *#parts(batches: AsyncIterable<readonly Place[]>, attempt: Attempt): AsyncGenerator<IndexPart> {
    for await (const places of batches) yield* this.#indexing.parts(await this.#indexing.searched(places), attempt);
  }

  /**
   * Includes the file, or all files below the folder. Yields them in batches. Files that the caller may not include are
   * skipped.
   */
  async *#included(place: Place): AsyncGenerator<readonly Place[]> {
    let waiting: readonly FileEntry[] = [];
    for await (const files of this.#filesBelow(place)) {
      waiting = [...waiting, ...files.filter((file) => mayInclude(this.#visibility, file))];
      for (; waiting.length >= FILE_INDEX_STEP_FILES; waiting = waiting.slice(FILE_INDEX_STEP_FILES))
        yield await this.#include(waiting.slice(0, FILE_INDEX_STEP_FILES));
    }
    yield await this.#include(waiting);
  }

  async #include(files: readonly FileEntry[]): Promise<readonly Place[]> {
    this.#run.signal.throwIfAborted();
    const others = files.filter(({ indexed }) => !indexed);
    const { contents } = this.#with;
    await mapLimited(others, FILE_INDEX_STEP_FILES, (file) => contents.include(this.#platform, file, true));
    return files;
  }

  /** The file, or the files below the folder, page by page. */
  async *#filesBelow(place: Place): AsyncGenerator<readonly FileEntry[]> {
    const entry = place.fullname === "/" ? undefined : await this.#with.files.find(this.#platform, place);
    if (entry?.content) return yield [entry];
    const folders: Place[] = [];
    for await (const page of this.#with.files.in(this.#platform, place, this.#run.signal)) {
      for (const { content, space, fullname } of page) if (!content) folders.push({ space, fullname });
      yield page.filter(({ content }) => content !== undefined);
    }
    for (const folder of folders) yield* this.#filesBelow(folder);
  }

  #step(): Promise<void> {
    return this.#run.step({ progress: this.#progress });
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
  async #forget(digest: string, attempt: Attempt): Promise<void> {
    const remove = await this.#with.contents.toRemove(this.#platform, digest);
    const before = await this.#fileWith(digest);
    if (before && !attempt.isRepeated) return;
    if (!before) await remove?.();
    const after = before ?? (await this.#fileWith(digest));
    // An earlier attempt may have removed a part of the passages of this file.
    if (after) await this.#indexing.again(after, attempt);
  }

  async #fileWith(digest: string): Promise<SearchedFile | undefined> {
    for await (const [first] of this.#with.contents.filesOf(this.#platform, [digest], this.#run.signal))
      if (first) return first;
    return undefined;
  }
}

async function* inBatches(places: readonly Place[]): AsyncGenerator<readonly Place[]> {
  for (let from = 0; from < places.length; from += FILE_INDEX_STEP_FILES)
    yield await Promise.resolve(places.slice(from, from + FILE_INDEX_STEP_FILES));
}
