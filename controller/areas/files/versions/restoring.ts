import { createHash } from "node:crypto";
import { AppError } from "../../../../common/errors.ts";
import type { FileEntry, HeldContent } from "../entries.ts";
import type { HidingGuard } from "../hiding.ts";
import { changingIndexed, IndexedWrites, replacing, type IndexKeeper } from "../search/keeper.ts";
import { replacedEntries, rowAt, type FileStore } from "../store.ts";
import { batches } from "./batches.ts";
import { fileEntryOf, hasSameContent, isSameEntry, keptOf, placeOfKept, type KeptEntry } from "./kept-entry.ts";
import type { KeptTrees } from "./records.ts";
import { newFiles, requireRestoring } from "./rights.ts";
import { listOf, type KeptTreeRun } from "./run.ts";
import { pairs, removeRuns, sorted, type Pair } from "./sorting.ts";
import { entriesBelow } from "./walk.ts";

interface Dependencies {
  readonly store: FileStore;
  readonly trees: KeptTrees;
  readonly hiding: HidingGuard;
  /** Absent: contents are not searched. */
  readonly keeper?: IndexKeeper | undefined;
}

/** Makes a tree equal to a version of it. */
export class Restoring {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  async run(run: KeptTreeRun): Promise<void> {
    const { key, list: read, retiring } = run.progress();
    if (retiring) return;
    const version = await this.#with.trees.get(run.open().tenant, key);
    if (!version) throw new AppError("not_found", `The version of ${run.root.fullname} is not there any more.`);
    const list = read ?? (await this.#read(run, version.list));
    await this.#with.store.makeFoldersAbove(run.platform, run.root);
    for await (const some of batches(differing(run, list, version.list))) await this.#apply(run, some);
    await this.#with.store.makeFoldersAbove(run.platform, run.root);
    // The marks of this list are those of the files themselves.
    await run.step({ ...run.progress(), retiring: { list, isUnmarked: true } });
  }

  /**
   * Reads the tree into a list, and counts how it differs from the version. Both are stored before the first change, so
   * the count and the marks of replaced files are known to every later attempt.
   */
  async #read(run: KeptTreeRun, version: string): Promise<string> {
    const list = listOf(run.open());
    await run.lists.write(list, sorted(run.lists, list, this.#entries(run)));
    await removeRuns(run.lists, list);
    let changed = 0;
    for await (const { before, after } of pairs(run.lists.read(list), run.lists.read(version, run.signal)))
      if (!hasSameContent(before, after)) changed += 1;
    await run.step({ ...run.progress(), list, changed });
    return list;
  }

  async *#entries({ platform, root, signal }: KeptTreeRun): AsyncGenerator<KeptEntry> {
    for await (const page of entriesBelow(this.#with.store, platform, root, signal))
      for (const entry of page) yield keptOf(root.fullname, entry);
  }

  async #apply(run: KeptTreeRun, some: readonly Pair[]): Promise<void> {
    run.signal.throwIfAborted();
    await this.#remove(
      run,
      some.filter(({ before, after }) => before && (!after || !before.content !== !after.content)),
    );
    await this.#put(
      run,
      some.filter(({ after }) => after !== undefined),
    );
  }

  /** Removes the entries that the version lacks, and those in whose place it has a folder or file. */
  async #remove({ platform, visibility, root, open }: KeptTreeRun, some: readonly Pair[]): Promise<void> {
    const places = some.flatMap(({ before }) => (before ? [placeOfKept(root, before.path)] : []));
    if (places.length === 0) return;
    const { store, keeper } = this.#with;
    const { id, startedMs } = open();
    const taking = await store.toTake(platform, places, { cause: "removed", atMs: startedMs, removal: id });
    for (const entry of taking.entries) visibility.requireWriting(entry, { before: entry, columns: [] });
    await new IndexedWrites(store, keeper).take(platform, taking);
  }

  async #put(run: KeptTreeRun, some: readonly Pair[]): Promise<void> {
    const { store, hiding, keeper } = this.#with;
    const { platform, visibility, root } = run;
    if (some.length === 0) return;
    const wanted = some.flatMap(({ after }) => (after ? [fileEntryOf(platform, root, after)] : []));
    const former = await store.get(platform, wanted);
    for (const [at, entry] of wanted.entries()) requireRestoring(visibility, entry, former[at]);
    if (run.open().hidesNothing) await hiding.requireNothingHidden(platform, newFiles(wanted, former));
    const put = wanted.map((entry, at) => ({ entry, former: former[at], content: newContent(run, entry, former[at]) }));
    const added = put.flatMap(({ content, former }) => (content && content !== former?.content ? [content] : []));
    await store.mark(platform, added);
    const rows = put.map(({ entry, content }) => rowAt(entry, entry, content));
    await store.keep(platform, replacedEntries(put), { cause: "replaced", atMs: run.open().startedMs });
    const write = (): Promise<void> => store.insert(platform, rows);
    await changingIndexed(keeper, platform, { change: replacing(root.space, former), write });
    await store.release(platform, released(put, some));
  }
}

/** The paths at which the tree and the version differ. */
async function* differing(run: KeptTreeRun, list: string, version: string): AsyncGenerator<Pair> {
  for await (const pair of pairs(run.lists.read(list, run.signal), run.lists.read(version, run.signal)))
    if (!isSameEntry(pair.before, pair.after)) yield pair;
}

/** A file that has the content already keeps its mark. Another mark is the same in every attempt. */
function newContent(run: KeptTreeRun, entry: FileEntry, former: FileEntry | undefined): HeldContent | undefined {
  const digest = entry.content?.digest;
  if (digest === undefined) return undefined;
  if (former?.content?.digest === digest) return former.content;
  const mark = createHash("sha256").update(`${run.open().id} ${entry.fullname}`).digest("base64url");
  return { digest, mark: `file/${mark}` };
}

interface Put {
  readonly former: FileEntry | undefined;
  readonly content: HeldContent | undefined;
}

/**
 * Contents of replaced files: of those that were there now, and of those that the list of the tree names, which an
 * earlier attempt may have replaced without coming this far.
 */
function released(put: readonly Put[], some: readonly Pair[]): readonly HeldContent[] {
  return put.flatMap(
    ({ former, content }, at) =>
      [former?.content, some[at]?.before?.content].filter(
        (old) => old !== undefined && (old.digest !== content?.digest || old.mark !== content.mark),
      ) as HeldContent[],
  );
}
