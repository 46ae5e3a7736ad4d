import { mapLimited } from "../../../common/concurrency.ts";
import { isOdpError } from "../../../common/client/index.ts";
import { errorText, isAppError, type ErrorCode } from "../../../common/errors.ts";
import { FILE_SYNC_AT_ONCE } from "../../../common/limits.ts";
import { ChangedWhileRead } from "./local-source.ts";
import type { Action, Base, BaseFile, Plan } from "./plan.ts";
import type { Read, Source, SyncOptions, Written } from "./side.ts";
import type { LeftOut, Tree, TreeEntry } from "./tree.ts";

/** Changes that were made, or would be. Paths are below the two folders. */
export interface SyncResult {
  readonly from: string;
  readonly to: string;
  readonly dry: boolean;
  readonly created: readonly string[];
  readonly replaced: readonly string[];
  readonly removed: readonly string[];
  /** Folders that were made. */
  readonly folders: readonly string[];
  /** Entries that differ and were not changed, because the target is not as the last sync left it. */
  readonly conflicts: readonly LeftOut[];
  /** Entries that cannot be synchronised. */
  readonly leftOut: readonly LeftOut[];
  readonly failed: readonly Failure[];
  /** Number of files and folders that are the same on both sides. */
  readonly same: number;
  /** Number of files and folders that only the target has, and keeps. */
  readonly kept: number;
}

export interface Failure {
  readonly path: string;
  readonly code: ErrorCode | "file";
  readonly message: string;
}

/** Failures of a disk that takes no further file. */
const NO_ROOM: readonly string[] = ["ENOSPC", "EDQUOT", "EROFS"];

type Kind = Action["kind"];
/** Kinds that are done one after the other: a folder before its files, a folder after all below it. */
const STEPS: readonly (readonly Kind[])[] = [["folder"], ["create", "replace"], ["remove"], ["rmdir"]];

/** Makes the changes of a plan, and keeps account of them. */
export class Execution {
  readonly #options: SyncOptions;
  readonly #plan: Plan;
  readonly #done: Action[] = [];
  readonly #conflicts: LeftOut[];
  readonly #leftOut: LeftOut[];
  readonly #failed: Failure[] = [];
  readonly #files = new Map<string, BaseFile>();
  /** Digests of contents whose write has no certain end. */
  readonly #sent = new Map<string, string>();
  #kept: number;
  #fatal: unknown;

  constructor(options: SyncOptions, plan: Plan) {
    this.#options = options;
    this.#plan = plan;
    this.#conflicts = [...plan.conflicts];
    this.#leftOut = [...plan.leftOut];
    this.#kept = plan.kept;
  }

  /** Returns the failure that ended the work before its end; `undefined` if there was none. */
  async run(): Promise<unknown> {
    const { actions } = this.#plan;
    for (const kinds of STEPS) {
      const step = actions.filter(({ kind }) => kinds.includes(kind));
      // Folders in their order, because each needs the one above it.
      const atOnce = kinds.includes("folder") || kinds.includes("rmdir") ? 1 : FILE_SYNC_AT_ONCE;
      await mapLimited(step, atOnce, (action) => this.#try(action));
    }
    return this.#fatal;
  }

  /** The answer of a dry run. */
  foreseen(): SyncResult {
    return this.#answer(this.#plan.actions);
  }

  result(): SyncResult {
    return this.#answer(this.#done);
  }

  /** Entries that both sides have in common after the changes. */
  common(before: Base, { source, target }: { readonly source: Tree; readonly target: Tree }): Base {
    const { isExcluded } = this.#options;
    const isKept = (key: string): boolean =>
      isExcluded(key) ||
      source.isLeftOut(key) ||
      target.isLeftOut(key) ||
      source.entries.has(key) ||
      target.entries.has(key);
    const files = new Map([...before.files].filter(([key]) => isKept(key)));
    const folders = new Set([...before.folders].filter(isKept));
    for (const [key, [from, over]] of this.#plan.same) {
      if (from.kind === "folder") folders.add(key);
      else files.set(key, this.#baseOf(from.digest ?? "", from, over));
    }
    for (const [key, file] of this.#files) files.set(key, file);
    for (const { kind, key } of this.#done) {
      if (kind === "folder") folders.add(key);
      else if (kind === "remove") files.delete(key);
      else if (kind === "rmdir") folders.delete(key);
    }
    return { files, folders, sent: this.#sentSince([...before.sent].filter(([key]) => isKept(key))) };
  }

  /** Contents that may have been stored, without those of files whose state is known again. */
  #sentSince(before: Iterable<readonly [string, string]>): Base["sent"] {
    const sent = new Map([...before, ...this.#sent]);
    for (const key of [...this.#plan.same.keys(), ...this.#files.keys()]) sent.delete(key);
    return sent;
  }

  /** One action. A failure that concerns all files ends the work; others are noted. */
  async #try(action: Action): Promise<void> {
    const { signal, progress } = this.#options;
    if (this.#fatal !== undefined) return;
    try {
      signal.throwIfAborted();
      await this.#make(action);
    } catch (error) {
      if (signal.aborted || isFatal(error)) this.#fatal ??= error;
      else this.#note(action, error);
    }
    progress?.(this.#done.length, this.#plan.actions.length);
  }

  async #make(action: Action): Promise<void> {
    const { source, target, signal } = this.#options;
    if (action.kind === "folder") await target.makeFolder(action.path, signal);
    else if (action.kind === "remove") await target.remove(action.over, signal);
    else if (action.kind === "rmdir") {
      if (!(await target.removeFolder(action.over, signal))) return void this.#kept++;
    } else if (action.kind === "create" || action.kind === "replace") {
      const from = await source.open(action.from, signal);
      const wanted = { version: action.over?.version };
      const written = await target.write(action.path, from, { wanted, signal }).catch((error: unknown) => {
        this.#noteSent(action.key, from, error);
        throw error;
      });
      const read = from.read();
      this.#files.set(action.key, this.#baseOf(read.digest, read, written));
    }
    this.#done.push(action);
  }

  /** Remembers a content that the controller may have stored, although the write failed. */
  #noteSent(key: string, from: Source, error: unknown): void {
    if (!this.#options.isUp || !isUncertain(error)) return;
    const digest = from.digestOfAll();
    if (digest !== undefined) this.#sent.set(key, digest);
  }

  #note({ path }: Action, error: unknown): void {
    const message = errorText(error);
    const isGone = isAppError(error, "not_found") || (error as NodeJS.ErrnoException).code === "ENOENT";
    if (error instanceof ChangedWhileRead)
      this.#leftOut.push({ path, why: "was changed while it was read", isPassing: true });
    else if (isAppError(error, "stale"))
      this.#conflicts.push({ path, why: `was changed meanwhile in ${this.#options.target.name}` });
    else if (isGone) this.#leftOut.push({ path, why: "was removed meanwhile", isPassing: true });
    else this.#failed.push({ path, code: isAppError(error) ? error.code : "file", message });
  }

  /** `versions` are those of source and target. */
  #baseOf(digest: string, source: Version, target: Version): BaseFile {
    const [local, remote] = this.#options.isUp ? [source, target] : [target, source];
    return { digest, revision: remote.version, local: local.isSettled ? local.version : "" };
  }

  #answer(actions: readonly Action[]): SyncResult {
    const { source, target, isDry } = this.#options;
    const paths = (...kinds: readonly Kind[]): readonly string[] =>
      actions.filter(({ kind }) => kinds.includes(kind)).map(({ path }) => path);
    return {
      from: source.name,
      to: target.name,
      dry: isDry,
      created: paths("create").toSorted(),
      replaced: paths("replace").toSorted(),
      removed: paths("remove", "rmdir").toSorted(),
      folders: paths("folder").toSorted(),
      conflicts: this.#conflicts.toSorted(byPath),
      leftOut: this.#leftOut.toSorted(byPath),
      failed: this.#failed.toSorted(byPath),
      same: this.#plan.same.size,
      kept: this.#kept,
    };
  }
}

/** True if the failure concerns all files, so that the rest need not be tried. */
export function isFatal(error: unknown): boolean {
  return (
    isAppError(error, "unavailable", "unknown_outcome", "deadline", "limited", "signin", "action_required") ||
    isOdpError(error, "cancelled") ||
    NO_ROOM.includes((error as NodeJS.ErrnoException | undefined)?.code ?? "")
  );
}

/** True if a write that failed may have been done. */
function isUncertain(error: unknown): boolean {
  return isOdpError(error, "unknown_outcome", "cancelled", "deadline") && !error.isUndone;
}

type Version = Pick<TreeEntry | Read | Written, "version"> & { readonly isSettled?: boolean };

function byPath(a: { readonly path: string }, b: { readonly path: string }): number {
  return a.path < b.path ? -1 : 1;
}
