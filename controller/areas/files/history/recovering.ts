import { createHash } from "node:crypto";
import { AppError, isAppError } from "../../../../common/errors.ts";
import { FILE_WORK_BATCH_MAX } from "../../../../common/limits.ts";
import { isInside } from "../../../../common/paths.ts";
import { TAGS_COLUMN } from "../../objects/index.ts";
import type { FileEntry, HeldContent } from "../entries.ts";
import type { HidingGuard } from "../hiding.ts";
import { foldersAbove, parentOf, type Place } from "../names.ts";
import { changingIndexed, type IndexKeeper } from "../search/keeper.ts";
import { rowAt, type FileStore } from "../store.ts";
import { batches } from "../versions/batches.ts";
import type { HeldWork } from "../versions/run.ts";
import type { HistoryStore } from "./store.ts";

interface Dependencies {
  readonly store: FileStore;
  readonly history: HistoryStore;
  readonly hiding: HidingGuard;
  /** Absent: contents are not searched. */
  readonly keeper?: IndexKeeper | undefined;
}

/**
 * Journaled work that restores a removed folder with everything that was removed with it. Entries that are there again
 * stay, so every step may be repeated. Rights on all entries are checked before the first write.
 */
export class Recovering {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** Returns the number of restored files, those of earlier attempts included. */
  async carry(work: HeldWork): Promise<number> {
    if (work.visibility.rules !== undefined || work.open.hidesNothing)
      for await (const some of this.#removed(work, () => true))
        await this.#require(work, await this.#missing(work, some));
    await this.#restoreFolders(work);
    let count = 0;
    for await (const some of this.#removed(work, ({ content }) => content !== undefined)) {
      const missing = await this.#missing(work, some);
      await this.#makeFolders(work, missing);
      await this.#put(work, missing);
      await this.#makeFolders(work, missing);
      count += missing.length + (await this.#own(work, some, missing));
    }
    return count;
  }

  /** Folders above are made with what they had, so a folder does not make those above it, except above the removal. */
  async #restoreFolders(work: HeldWork): Promise<void> {
    const { store } = this.#with;
    const { platform, open } = work;
    const top = { space: open.space, fullname: open.from };
    await store.makeFoldersAbove(platform, top);
    for await (const some of this.#removed(work, ({ content }) => !content)) {
      const missing = await this.#missing(work, some);
      const above = missing.map(({ space, fullname }) => ({ space, fullname: parentOf(fullname) }));
      await store.requireNoFiles(platform, above);
      await this.#put(work, missing);
    }
    await store.makeFoldersAbove(platform, top);
  }

  async *#removed(
    { open: { removal = "", space, from }, platform, signal }: HeldWork,
    isWanted: (entry: FileEntry) => boolean,
  ): AsyncGenerator<readonly FileEntry[]> {
    const where = [{ kind: "equals", column: "removal", values: [removal] }] as const;
    const pages = this.#with.history.read(platform, where, signal);
    const entries = async function* (): AsyncGenerator<FileEntry> {
      for await (const page of pages)
        for (const { entry, removal: found } of page)
          if (found === removal && entry.space === space && isInside(from, entry.fullname) && isWanted(entry))
            yield entry;
    };
    yield* batches(entries());
  }

  async #missing({ platform, signal }: HeldWork, entries: readonly FileEntry[]): Promise<readonly FileEntry[]> {
    signal.throwIfAborted();
    const now = await this.#with.store.get(platform, entries);
    return entries.filter((_, at) => !now[at]);
  }

  /** Number of files that an earlier attempt of the work has restored. */
  async #own(work: HeldWork, some: readonly FileEntry[], missing: readonly FileEntry[]): Promise<number> {
    const there = some.filter((entry) => !missing.includes(entry));
    const now = await this.#with.store.get(work.platform, there);
    return now.filter((entry, at) => {
      const former = there[at];
      return former && entry?.content?.mark === newContent(work, former)?.mark;
    }).length;
  }

  async #put(work: HeldWork, entries: readonly FileEntry[]): Promise<void> {
    if (entries.length === 0) return;
    const { store } = this.#with;
    await this.#require(work, entries);
    const contents = entries.map((entry) => newContent(work, entry));
    await store
      .mark(
        work.platform,
        contents.flatMap((content) => content ?? []),
      )
      .catch((error: unknown) => {
        if (!isAppError(error, "not_found")) throw error;
        throw new AppError(
          "conflict",
          `The history of ${work.open.from} is being purged: a content is not kept any more.`,
        );
      });
    const paths = entries.filter(({ indexed }) => indexed).map(({ fullname }) => fullname);
    const rows = entries.map((entry, at) => rowAt(entry, entry, contents[at]));
    await changingIndexed(this.#with.keeper, work.platform, {
      change: { space: work.open.space, paths, lost: [] },
      write: () => store.insert(work.platform, rows),
    });
  }

  async #makeFolders({ platform }: HeldWork, entries: readonly FileEntry[]): Promise<void> {
    const folders = new Map<string, Place>();
    for (const entry of entries) for (const folder of foldersAbove(entry)) folders.set(folder.fullname, folder);
    const places = [...folders.values()];
    for (let from = 0; from < places.length; from += FILE_WORK_BATCH_MAX)
      await this.#with.store.makeFolders(platform, places.slice(from, from + FILE_WORK_BATCH_MAX));
  }

  /** `AppError("denied")` unless the user sees all of what the entries were, and may write them. */
  async #require({ visibility, platform, open }: HeldWork, entries: readonly FileEntry[]): Promise<void> {
    for (const entry of visibility.rules === undefined ? [] : entries) {
      visibility.requireAllOf(entry);
      const columns = ["digest", "ftype", "attr", TAGS_COLUMN];
      visibility.requireWriting(entry, { before: undefined, after: rowAt(entry, entry, entry.content), columns });
    }
    if (!open.hidesNothing) return;
    await this.#with.hiding.requireNothingHidden(
      platform,
      entries.filter(({ content }) => content !== undefined),
    );
  }
}

/** The mark is the same in every attempt. */
function newContent({ open }: HeldWork, { content, fullname }: FileEntry): HeldContent | undefined {
  if (!content) return undefined;
  const mark = createHash("sha256").update(`${open.id} ${fullname}`).digest("base64url");
  return { digest: content.digest, mark: `file/${mark}` };
}
