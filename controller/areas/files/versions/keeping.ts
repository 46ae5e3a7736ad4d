import { createHash } from "node:crypto";
import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError, isAppError } from "../../../../common/errors.ts";
import { FILE_BLOB_CALLS_IN_FLIGHT } from "../../../../common/limits.ts";
import type { HeldContent } from "../entries.ts";
import type { FileStore } from "../store.ts";
import { batches } from "./batches.ts";
import { hasSameContent, isSameEntry, keptOf, type KeptEntry } from "./kept-entry.ts";
import type { ListSize } from "./lists.ts";
import type { KeptTrees, StoredTree } from "./records.ts";
import { listOf, type KeptTreeRun } from "./run.ts";
import { NO_ENTRIES, pairs, removeRuns, sorted, type Pair } from "./sorting.ts";
import { entriesBelow } from "./walk.ts";

interface Dependencies {
  readonly store: FileStore;
  readonly trees: KeptTrees;
}

/** Keeps a tree under the key of a version or snapshot. */
export class Keeping {
  readonly #store: FileStore;
  readonly #trees: KeptTrees;

  constructor({ store, trees }: Dependencies) {
    this.#store = store;
    this.#trees = trees;
  }

  /** A tree that is equal to the former version changes nothing, not even its time. */
  async run(run: KeptTreeRun): Promise<void> {
    if (run.progress().isKept) return;
    const { tenant } = run.open();
    const former = await this.#trees.get(tenant, run.progress().key);
    if (!former) await this.#trees.requireRoom(tenant, { ...run.root, ...run.progress() });
    if (run.progress().list === undefined) await this.#read(run, former);
    if (run.progress().list === undefined) return;
    await this.#mark(run, former);
    await this.#replace(run, former);
  }

  /** Reads the tree into a list. The step names it, unless the tree is equal to the former version. */
  async #read(run: KeptTreeRun, former: StoredTree | undefined): Promise<void> {
    const list = listOf(run.open());
    // A snapshot is always replaced: a newer one of a path below it must not count any more.
    const found = { changed: 0, isSame: former?.name !== undefined };
    const size = await run.lists.write(list, this.#compared(run, former, found));
    await removeRuns(run.lists, list);
    if (size.entries === 0)
      throw new AppError("not_found", `There is no file or folder ${run.root.fullname} any more.`);
    if (found.isSame) return run.lists.remove(list);
    await run.step({ ...run.progress(), list, size, changed: found.changed });
  }

  /** The entries of the tree, each with the mark that keeps its content. Counts how they differ from the former ones. */
  async *#compared(
    run: KeptTreeRun,
    former: StoredTree | undefined,
    found: { changed: number; isSame: boolean },
  ): AsyncGenerator<KeptEntry> {
    const before = former ? run.lists.read(former.list, run.signal) : NO_ENTRIES;
    for await (const pair of pairs(before, sorted(run.lists, listOf(run.open()), this.#entries(run)))) {
      if (!hasSameContent(pair.before, pair.after)) found.changed += 1;
      if (!isSameEntry(pair.before, pair.after)) found.isSame = false;
      if (pair.after) yield { ...pair.after, content: markedContent(run.open().id, pair) };
    }
  }

  async *#entries(run: KeptTreeRun): AsyncGenerator<KeptEntry> {
    for await (const page of entriesBelow(this.#store, run.platform, run.root, run.signal)) {
      for (const entry of page) {
        run.visibility.requireAllOf(entry);
        yield keptOf(run.root.fullname, entry);
      }
    }
  }

  /** Marks the contents that the former version does not have at the same path. */
  async #mark(run: KeptTreeRun, former: StoredTree | undefined): Promise<void> {
    const before = former ? run.lists.read(former.list, run.signal) : NO_ENTRIES;
    const after = run.lists.read(run.progress().list ?? "", run.signal);
    for await (const some of batches(pairs(before, after))) {
      const contents = some.flatMap((pair) => newContent(pair) ?? []);
      await mapLimited(contents, FILE_BLOB_CALLS_IN_FLIGHT, ({ digest, mark }) =>
        run.blobs.mark(digest, mark).catch((error: unknown) => {
          throw isAppError(error, "not_found") ? changedMeanwhile(run) : error;
        }),
      );
    }
  }

  /** The record names the new list from here on. The former list is retired. */
  async #replace(run: KeptTreeRun, former: StoredTree | undefined): Promise<void> {
    const { user, tenant, startedMs, hidesNothing } = run.open();
    const { key, name, list = "", size } = run.progress();
    const tree = {
      ...run.root,
      ...(size ?? NO_SIZE),
      ...(name !== undefined && { name }),
      ...(!hidesNothing && { mayHide: true as const }),
      user,
      timeMs: startedMs,
      list,
    };
    const retiring = former && { retiring: { list: former.list, except: list } };
    const writes = await this.#trees.putting(tenant, key, tree);
    await run.step({ ...run.progress(), isKept: true, ...retiring }, writes);
  }
}

const NO_SIZE: ListSize = { entries: 0, bytes: 0 };

/** A content at the same path keeps its mark. Another one gets a mark that is the same in every attempt. */
function markedContent(id: string, { before, after }: Pair): HeldContent | undefined {
  const digest = after?.content?.digest;
  if (after === undefined || digest === undefined) return undefined;
  if (before?.content?.digest === digest) return before.content;
  const mark = createHash("sha256").update(`${id} ${after.path}`).digest("base64url");
  return { digest, mark: `fileversion/${mark}` };
}

function newContent({ before, after }: Pair): HeldContent | undefined {
  return after?.content && after.content.mark !== before?.content?.mark ? after.content : undefined;
}

function changedMeanwhile({ root }: KeptTreeRun): AppError {
  return new AppError("conflict", `${root.fullname} was changed while it was being kept: try again.`);
}
