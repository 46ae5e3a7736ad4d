import { AppError, isAppError } from "../../../../common/errors.ts";
import type { Stores } from "../../../store/engine.ts";
import { isTransient } from "../../../store/journal/index.ts";
import type { HidingGuard } from "../hiding.ts";
import type { IndexKeeper } from "../search/keeper.ts";
import type { FileStore } from "../store.ts";
import { Keeping } from "./keeping.ts";
import { KeptEntries } from "./kept-entries.ts";
import { EntryLists } from "./lists.ts";
import { KeptTrees } from "./records.ts";
import { Restoring } from "./restoring.ts";
import { TreeRights } from "./rights.ts";
import { retire } from "./retiring.ts";
import { listOf, type HeldWork, type KeptTreeRun } from "./run.ts";
import { removeRuns } from "./sorting.ts";

interface Dependencies {
  readonly stores: Stores;
  readonly store: FileStore;
  readonly hiding: HidingGuard;
  /** Absent: contents are not searched. */
  readonly keeper?: IndexKeeper | undefined;
}

/**
 * Work that keeps a tree, restores it, or removes what was kept. It is journaled like copies and moves, so such work
 * excludes other work on the same paths, and another controller continues it from the last stored step:
 *
 * 1. The rights of all entries are checked, and the tree is read into a list, sorted by path. The step names the list.
 * 2. Keeping marks the contents of the list that the former version lacks. Then one transaction puts the record of the
 *    version and the next step: readers see the old or the new version.
 * 3. Restoring writes and removes the entries that differ.
 * 4. The list that is no longer needed is retired: its marks are removed, then the list. Failed work retires its own.
 */
export class KeptTreeWorks {
  readonly #stores: Stores;
  readonly #trees: KeptTrees;
  readonly #rights: TreeRights;
  readonly #keeping: Keeping;
  readonly #restoring: Restoring;

  constructor({ stores, store, hiding, keeper }: Dependencies) {
    this.#stores = stores;
    this.#trees = new KeptTrees(stores);
    const parts = { store, trees: this.#trees, hiding };
    this.#rights = new TreeRights({ ...parts, entries: new KeptEntries(stores) });
    this.#keeping = new Keeping(parts);
    this.#restoring = new Restoring({ ...parts, keeper });
  }

  /** Returns the number of files of other content than before. Every step may be repeated. */
  async carry(held: HeldWork): Promise<number> {
    const { blobs } = await this.#stores.tenant(held.open.tenant);
    const run = runOf(held, blobs);
    await removeAttempts(run);
    if (run.progress().failed === undefined) await this.#advance(run);
    await retire(run);
    await this.#retireBelow(run);
    await removeAttempts(run);
    const { failed, changed = 0 } = run.progress();
    if (failed) throw new AppError(failed.code, failed.message);
    return changed;
  }

  async #advance(run: KeptTreeRun): Promise<void> {
    try {
      const { kind } = run.open();
      await this.#requireRights(run);
      if (kind === "keep") await this.#keeping.run(run);
      else if (kind === "restore") await this.#restoring.run(run);
      else await this.#release(run);
    } catch (error) {
      if (!isAppError(error) || isTransient(error)) throw error;
      await this.#fail(run, error);
    }
  }

  /** Before the first change only: the rights on what the work has changed already are not asked again. */
  async #requireRights({ open, progress, root, platform: principal, visibility, signal }: KeptTreeRun): Promise<void> {
    const { list, retiring } = progress();
    if (list !== undefined || retiring) return;
    const { kind, hidesNothing } = open();
    await this.#rights.require({ principal, visibility, hidesNothing, signal }, { ...progress(), kind, root });
  }

  /** Removes the record. Its list is retired afterwards. */
  async #release({ open, progress, step }: KeptTreeRun): Promise<void> {
    const { tenant } = open();
    const { key, retiring } = progress();
    const tree = retiring ? undefined : await this.#trees.get(tenant, key);
    if (!tree) return;
    const deletion = await this.#trees.deleting(tenant, key, tree);
    await step({ ...progress(), retiring: { list: tree.list } }, deletion);
  }

  /** Marks that the failed work has set are removed again. What was restored stays. */
  async #fail(run: KeptTreeRun, { code, message }: AppError): Promise<void> {
    const { tenant, kind } = run.open();
    const { key, list } = run.progress();
    const failed = { code, message };
    if (list === undefined) {
      await removeAttempt(run, run.open().attempt);
      return run.step({ ...run.progress(), failed });
    }
    const former = await this.#trees.get(tenant, key);
    const except = former && { except: former.list };
    const retiring = kind === "keep" ? { list, ...except } : { list, isUnmarked: true as const };
    await run.step({ ...run.progress(), failed, retiring });
  }

  /** A snapshot replaces older ones of paths below it. */
  async #retireBelow(run: KeptTreeRun): Promise<void> {
    const { name, isKept } = run.progress();
    if (name !== undefined || !isKept) return;
    const { tenant } = run.open();
    const { root, progress } = run;
    for (const below of await this.#trees.snapshotsBelow(tenant, root)) {
      const deletion = await this.#trees.deleting(tenant, below.key, below);
      await run.step({ ...progress(), retiring: { list: below.list } }, deletion);
      await retire(run);
    }
  }
}

function runOf(held: HeldWork, blobs: KeptTreeRun["blobs"]): KeptTreeRun {
  const { platform, visibility, signal } = held;
  const { space, from: fullname, kept } = held.open;
  if (!kept) throw new RangeError("the work has no kept tree");
  return {
    open: () => held.open,
    progress: () => held.open.kept ?? kept,
    step: (progress, beside) => held.step(progress, beside),
    root: { space, fullname },
    lists: new EntryLists(blobs),
    ...{ platform, visibility, signal, blobs },
  };
}

/**
 * Removes what earlier attempts left, except the list that the work names. Called at the beginning and at the end of a
 * run: a controller that lost the work may notice that late, and write on until then.
 */
async function removeAttempts(run: KeptTreeRun): Promise<void> {
  for (let attempt = 0; attempt < run.open().attempt; attempt++) await removeAttempt(run, attempt);
}

async function removeAttempt({ open, progress, lists }: KeptTreeRun, attempt: number): Promise<void> {
  const list = listOf({ id: open().id, attempt });
  await removeRuns(lists, list);
  if (list !== progress().list) await lists.remove(list);
}
