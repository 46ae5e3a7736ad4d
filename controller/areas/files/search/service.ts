import { HistoryStore } from "../history/store.ts";
import { withinTime } from "../../../../common/concurrency.ts";
import { AppError } from "../../../../common/errors.ts";
import { ulidOf } from "../../../../common/ids.ts";
import {
  FILE_INDEX_CHANGES_WAITING_MAX,
  FILE_INDEX_REQUESTS_OPEN_MAX,
  FILE_INDEX_WRITE_ANSWER_MS,
  FILE_WORK_ANSWER_MS,
} from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import type { Controllers, NewWork } from "../../../store/journal/index.ts";
import type { Workers } from "../../../workers/index.ts";
import type { Objects } from "../../objects/index.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import type { FileEntry } from "../entries.ts";
import { placeBelowRoot, placeOf, type FileName, type Place } from "../names.ts";
import { openPlace, visiblePlace } from "../open-places.ts";
import { FileStore } from "../store.ts";
import type { FileTasks } from "../tasks.ts";
import { fileVisibility, type FileVisibility } from "../visible.ts";
import { Extractions } from "./extractions.ts";
import { Finding, type FoundFiles } from "./finding.ts";
import { indexJournal, NO_PROGRESS, type IndexJournal, type IndexProgress, type OpenIndexing } from "./journal.ts";
import { searchedDigests, type IndexedChange, type IndexKeeper } from "./keeper.ts";
import { mayInclude, readsContent } from "./rights.ts";
import { ContentStore } from "./store.ts";
import { WantedParts } from "./wanted.ts";
import { IndexingQueue } from "./queue.ts";

interface Dependencies {
  readonly stores: Stores;
  readonly objects: Objects;
  readonly runtime: Runtime;
  readonly controllers: Controllers;
  /** Absent: texts are extracted on the main thread. For tests. */
  readonly workers?: Workers<FileTasks> | undefined;
}

/** Search in the contents of files, and the index for it. */
export class FileSearchService implements IndexKeeper {
  readonly #with: Dependencies;
  readonly #files: FileStore;
  readonly #contents: ContentStore;
  readonly #journal: IndexJournal;
  readonly #queue: IndexingQueue;
  readonly #finding: Finding;
  readonly #visibilityOf: (principal: Principal) => Promise<FileVisibility>;

  constructor(dependencies: Dependencies) {
    const { stores, objects, runtime } = dependencies;
    const nowMs = (): number => runtime.clock.nowMs();
    this.#with = dependencies;
    this.#files = new FileStore({
      stores,
      objects,
      runtime,
      history: new HistoryStore(dependencies),
      settle: () => Promise.reject(new Error("The search takes no files.")),
    });
    this.#contents = new ContentStore(objects);
    this.#journal = indexJournal(dependencies);
    this.#visibilityOf = (principal) => fileVisibility(principal, { objects, nowMs });
    this.#finding = new Finding({ contents: this.#contents, files: this.#files, runtime });
    this.#queue = new IndexingQueue({
      journal: this.#journal,
      files: this.#files,
      contents: this.#contents,
      extractions: new Extractions(dependencies),
      runtime,
      visibilityOf: this.#visibilityOf,
    });
  }

  /**
   * Includes a file, or all files below a folder, in the search, and indexes their contents. Files that the principal
   * may not read or write by rules are left out. Later writes of these files are indexed by themselves.
   * `AppError("deadline")`: the work continues in the background.
   */
  async index(principal: Principal, name: FileName): Promise<IndexProgress> {
    requirePermission(principal, "files:write");
    const over = await this.#index(principal, name, FILE_WORK_ANSWER_MS);
    if (!over?.end) throw new AppError("deadline", `${name.path} is still being indexed, which goes on by itself.`);
    if (over.end.code) throw new AppError(over.end.code, over.end.message);
    return over.progress ?? NO_PROGRESS;
  }

  /**
   * Includes a file that was just written in the search, or takes it out. Absent: it stays as it was. Waits a short time
   * only. Returns warnings: reasons why the content is not found, or not yet.
   */
  async written(principal: Principal, name: FileName, isIncluded: boolean | undefined): Promise<readonly string[]> {
    requirePermission(principal, "files:write");
    if (isIncluded === undefined) return [];
    if (!isIncluded) return this.exclude(principal, name);
    const over = await this.#index(principal, name, FILE_INDEX_WRITE_ANSWER_MS);
    if (over?.end?.code) throw new AppError(over.end.code, over.end.message);
    return over?.end ? (over.progress?.named ?? []) : [`${name.path} is still being indexed.`];
  }

  /** Takes a file out of the search. Its passages are removed if no other searched file has its content. Returns a warning for a folder. */
  async exclude(principal: Principal, name: FileName): Promise<readonly string[]> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    const visibility = await this.#visibilityOf(principal);
    const entry = await this.#required(principal, place, visibility);
    if (!entry?.content) return [`index=false takes out single files, not the folder ${place.fullname}.`];
    if (!entry.indexed) return [];
    if (!mayInclude(visibility, entry))
      throw new AppError("denied", `${principal.user} may not exclude ${place.fullname}, by the rules for files.`);
    const changed = await this.changing(principal, { space: place.space, paths: [], lost: searchedDigests([entry]) });
    try {
      await this.#contents.include(principal, place, false);
    } finally {
      changed();
    }
    return [];
  }

  /**
   * Places below a file or folder where all words of the query are found, the best first. Only files that the principal
   * may read now.
   */
  async search(
    principal: Principal,
    name: FileName,
    question: { query: string; signal?: AbortSignal },
  ): Promise<FoundFiles> {
    requirePermission(principal, "files:read");
    const folder = visiblePlace(principal, placeOf(name));
    const visibility = await this.#visibilityOf(principal);
    const wanted = new WantedParts(question.query);
    const found = await this.#finding.find({ principal, folder, wanted, visibility, signal: question.signal });
    // As in a listing, a folder that rules hide does not hide files in it.
    if (found.rows.length === 0) await this.#required(principal, folder, visibility);
    return found;
  }

  /**
   * How the search sees each of these entries, which the caller may read: empty for one that is not searched, else
   * `indexed`, `indexing`, or the reason why it, or a part of it, is not found.
   */
  async statuses(principal: Principal, entries: readonly FileEntry[]): Promise<readonly string[]> {
    requirePermission(principal, "files:read");
    const digests = searchedDigests(entries);
    if (digests.length === 0) return entries.map(() => "");
    const visibility = await this.#visibilityOf(principal);
    const states = await this.#contents.states(principal, digests);
    const known = new Map(digests.map((digest, at) => [digest, states[at]]));
    return entries.map((entry) => {
      if (!entry.indexed || !entry.content || !readsContent(visibility, entry)) return "";
      const state = known.get(entry.content.digest);
      if (state === undefined || state.state === "indexing") return "indexing";
      return state.reason === "" ? "indexed" : `${state.state}: ${state.reason}`;
    });
  }

  async changing(principal: Principal, { space, paths, lost }: IndexedChange): Promise<() => void> {
    requirePermission(principal, "files:write");
    if (this.#queue.waiting >= FILE_INDEX_CHANGES_WAITING_MAX)
      throw new AppError("limited", "Too many changes of searched files wait to be indexed: try again later.");
    const work = { ...this.#work(principal), space, paths, lost };
    this.#journal.inFlight.hold(work.id);
    try {
      const begun = await this.#journal.begin(work);
      return () => this.#queue.begin(begun);
    } catch (error) {
      this.#journal.inFlight.letGo(work.id);
      throw error;
    }
  }

  /** Continues indexing that other controllers left. */
  async maintain(tenant: string): Promise<void> {
    for await (const found of this.#journal.abandoned(tenant)) {
      if (this.#queue.waiting >= FILE_INDEX_CHANGES_WAITING_MAX) return;
      const mine = await this.#journal.take(found);
      if (mine) this.#queue.begin(mine);
    }
  }

  /** Resolves when all indexing that this controller has begun has ended or paused. */
  settled(): Promise<void> {
    return this.#journal.inFlight.settled();
  }

  close(): Promise<void> {
    return this.#journal.inFlight.close();
  }

  /** Resolves with the work when it has ended or paused; `undefined` after that time. */
  async #index(principal: Principal, name: FileName, answerMs: number): Promise<OpenIndexing | undefined> {
    const place = openPlace(principal, placeOf(name));
    const visibility = await this.#visibilityOf(principal);
    const entry = await this.#required(principal, place, visibility);
    if (entry?.content && !mayInclude(visibility, entry))
      throw new AppError("denied", `${principal.user} may not index ${place.fullname}, by the rules for files.`);
    await this.#refuseTooMany(principal);
    const rules = visibility.rules && { rules: visibility.rules };
    const work = { ...this.#work(principal), space: place.space, from: place.fullname, paths: [], lost: [], ...rules };
    const carried = this.#start(work);
    carried.catch(() => undefined);
    return withinTime(this.#with.runtime.clock, carried, answerMs);
  }

  async #start(work: NewWork<OpenIndexing>): Promise<OpenIndexing> {
    this.#journal.inFlight.hold(work.id);
    try {
      const begun = await this.#journal.begin(work);
      return await this.#queue.run(begun);
    } finally {
      this.#journal.inFlight.letGo(work.id);
    }
  }

  #work({ tenant, ospace, user, traceparent }: Principal) {
    const { clock, random } = this.#with.runtime;
    const startedMs = clock.nowMs();
    return { id: ulidOf(startedMs, random.bytes(10)), tenant, ospace, user, traceparent, startedMs };
  }

  async #refuseTooMany({ tenant }: Principal): Promise<void> {
    let open = 0;
    for await (const { open: work } of this.#journal.all(tenant)) if (work.from !== undefined) open += 1;
    if (open < FILE_INDEX_REQUESTS_OPEN_MAX) return;
    throw new AppError("limited", `At most ${FILE_INDEX_REQUESTS_OPEN_MAX} files or folders are indexed at once.`);
  }

  /** The entry; `undefined` for the root and for a folder without a row. `AppError("not_found")` if nothing is seen. */
  async #required(principal: Principal, place: Place, visibility: FileVisibility): Promise<FileEntry | undefined> {
    if (place.fullname === "/") return undefined;
    const entry = await this.#files.find(principal, place);
    const isSeen = entry ? visibility.shown(entry) !== undefined : await this.#files.holdsAny(principal, place);
    if (isSeen) return entry;
    throw new AppError("not_found", `There is no file or folder ${place.fullname}.`);
  }
}
