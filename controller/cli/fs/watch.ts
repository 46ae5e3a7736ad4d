import { watch, type FSWatcher } from "node:fs";
import { basename, join } from "node:path";
import { isAppError } from "../../../common/errors.ts";
import {
  FILE_SYNC_BURST_MAX_MS,
  FILE_SYNC_PAUSE_MAX_MS,
  FILE_SYNC_PAUSE_MS,
  FILE_SYNC_QUIET_MS,
} from "../../../common/limits.ts";
import { wait, type Clock, type Random } from "../../../common/time.ts";

/** Tells that something may have changed; what did is found by comparing. */
export interface Changes {
  /** Watches these folders from now on, and no others. Returns true if some of them were not watched before. */
  follow(folders: readonly string[]): boolean;
  /** Resolves when something may have changed since the last call of `begin`, or the signal fires. */
  changed(signal: AbortSignal): Promise<void>;
  begin(): void;
  close(): void;
}

export interface FolderChangesOptions {
  readonly root: string;
  /** True for the name of a file whose changes are not told. */
  readonly isIgnored: (name: string) => boolean;
  /** Called once if folders cannot be watched, as beyond the bounds of the system. */
  readonly note: (text: string) => void;
}

/**
 * Changes in local folders. Each folder is watched by itself: on Linux, Node watches a whole tree by a watch for each
 * file. Nothing is followed through symbolic links.
 */
export class FolderChanges implements Changes {
  readonly #options: FolderChangesOptions;
  readonly #watchers = new Map<string, FSWatcher>();
  #isChanged = false;
  #wake: (() => void) | undefined;
  #isRefused = false;

  constructor(options: FolderChangesOptions) {
    this.#options = options;
  }

  follow(folders: readonly string[]): boolean {
    const wanted = new Set(folders);
    for (const [folder, watcher] of this.#watchers) if (!wanted.has(folder)) this.#drop(folder, watcher);
    const missing = folders.filter((folder) => !this.#watchers.has(folder));
    return missing.map((folder) => this.#watch(folder)).some(Boolean);
  }

  begin(): void {
    this.#isChanged = false;
  }

  async changed(signal: AbortSignal): Promise<void> {
    if (this.#isChanged || signal.aborted) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    this.#wake = undefined;
  }

  close(): void {
    for (const [folder, watcher] of this.#watchers) this.#drop(folder, watcher);
  }

  #watch(folder: string): boolean {
    try {
      const watcher = watch(join(this.#options.root, folder), (_kind, name) => this.#told(folder, name));
      // A folder that was removed is found by the comparison.
      watcher.on("error", () => this.#lost(folder, watcher));
      this.#watchers.set(folder, watcher);
      return true;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code !== "ENOENT" && !this.#isRefused) {
        this.#isRefused = true;
        this.#options.note(`not all folders can be watched, so changes there are found later: ${message}`);
      }
      return false;
    }
  }

  #told(folder: string, name: string | null): void {
    if (name !== null && this.#options.isIgnored(folder === "" ? name : `${folder}/${name}`)) return;
    this.#change();
    // The folder itself was moved or removed: another one may have its name.
    if (name !== null && folder !== "" && name === basename(folder)) this.#lost(folder, this.#watchers.get(folder));
  }

  #lost(folder: string, watcher: FSWatcher | undefined): void {
    if (watcher) this.#drop(folder, watcher);
    this.#change();
  }

  #change(): void {
    this.#isChanged = true;
    this.#wake?.();
  }

  #drop(folder: string, watcher: FSWatcher): void {
    this.#watchers.delete(folder);
    watcher.close();
  }
}

/** No announced changes, as of a folder of the controller. */
export const UNANNOUNCED: Changes = {
  follow: () => false,
  changed: (signal) =>
    new Promise((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener("abort", () => resolve(), { once: true });
    }),
  begin: () => undefined,
  close: () => undefined,
};

export interface Compared {
  /** Folders of the local side. */
  readonly folders: readonly string[];
  /** True if something was not done that may be done soon. */
  readonly isUnfinished: boolean;
}

export interface WatchOptions {
  readonly changes: Changes;
  /** Compares and synchronises both sides as a whole. */
  readonly compare: () => Promise<Compared>;
  /** Time without a change after which both sides are compared again. */
  readonly everyMs: number;
  readonly clock: Clock;
  readonly random: Pick<Random, "next">;
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
}

/**
 * Compares at the beginning, after each burst of changes, and now and then, until the signal fires. After a failure that
 * may pass, as while the controller is away, it tries again with longer and longer pauses. Other failures are thrown.
 */
export async function watchFolder(options: WatchOptions): Promise<void> {
  const { changes, clock, signal } = options;
  let failures = 0;
  try {
    while (!signal.aborted) {
      changes.begin();
      const compared = await attempted(options, failures);
      failures = compared === undefined ? failures + 1 : 0;
      if (compared === undefined) {
        await wait(clock, pauseMs(options, failures), signal);
        continue;
      }
      // A folder may have changed before its watch began.
      if (changes.follow(compared.folders)) continue;
      await nextChange(options, compared);
    }
  } finally {
    changes.close();
  }
}

/** `undefined` after a failure that may pass. */
async function attempted({ compare, signal, note }: WatchOptions, failures: number): Promise<Compared | undefined> {
  try {
    const compared = await compare();
    if (failures > 0) note("going on");
    return compared;
  } catch (error) {
    if (signal.aborted) return undefined;
    if (!isPassing(error)) throw error;
    if (failures === 0) note(`${error.message} Trying again now and then.`);
    return undefined;
  }
}

function isPassing(error: unknown): error is Error {
  return isAppError(error, "unavailable", "unknown_outcome", "deadline", "limited", "conflict");
}

function pauseMs({ random }: WatchOptions, failures: number): number {
  return Math.min(FILE_SYNC_PAUSE_MAX_MS, FILE_SYNC_PAUSE_MS * 2 ** (failures - 1)) * (0.5 + random.next() / 2);
}

/** Waits for a change and then for quiet: editors write a file by several steps. */
async function nextChange(
  { changes, clock, everyMs, signal }: WatchOptions,
  { isUnfinished }: Compared,
): Promise<void> {
  const due = isUnfinished ? Math.min(everyMs, FILE_SYNC_PAUSE_MS) : everyMs;
  if (!(await changedWithin({ changes, clock, signal }, due))) return;
  const endMs = clock.monotonicMs() + FILE_SYNC_BURST_MAX_MS;
  do changes.begin();
  while (clock.monotonicMs() < endMs && (await changedWithin({ changes, clock, signal }, FILE_SYNC_QUIET_MS)));
}

/** True if something changed within that time. */
async function changedWithin(
  { changes, clock, signal }: Pick<WatchOptions, "changes" | "clock" | "signal">,
  withinMs: number,
): Promise<boolean> {
  const over = new AbortController();
  const end = (): void => over.abort();
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  const cancel = clock.after(withinMs, end);
  await changes.changed(over.signal);
  cancel();
  signal.removeEventListener("abort", end);
  return !over.signal.aborted;
}
