import type { OdpClient } from "../../../common/client/index.ts";
import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { FILE_SYNC_COMPARE_LOCAL_MS, FILE_SYNC_COMPARE_REMOTE_MS } from "../../../common/limits.ts";
import type { Clock, Random } from "../../../common/time.ts";
import type { SyncResult } from "./execution.ts";
import { exclusion, type ExclusionOptions } from "./excluded.ts";
import { LocalFolder } from "./local.ts";
import { direction } from "./places.ts";
import { RemoteFolder } from "./remote.ts";
import { exitCodeOf } from "./report.ts";
import type { Base } from "./plan.ts";
import type { SyncOptions } from "./side.ts";
import { NO_BASE, SyncState } from "./state.ts";
import { synchronise } from "./sync.ts";
import { FolderChanges, UNANNOUNCED, watchFolder, type Changes } from "./watch.ts";

export interface SyncRequest {
  readonly from: string;
  readonly to: string;
  readonly isForced: boolean;
  readonly isDeleting: boolean;
  readonly isDry: boolean;
  /** True for the system's space of files. */
  readonly isSystem: boolean;
  readonly exclusion: ExclusionOptions;
}

export interface SyncEnvironment {
  readonly client: Pick<OdpClient, "call" | "answer" | "download">;
  /** Address of the controller and name of the tenant: the state of a sync is kept for both. */
  readonly controller: string;
  readonly clock: Clock;
  readonly random: Pick<Random, "next">;
  /** `process.platform` */
  readonly platform: string;
  readonly signal: AbortSignal;
  readonly progress: (done: number, of: number) => void;
  /** Takes the result of each comparison. */
  readonly told: (result: SyncResult) => void | Promise<void>;
  /** Takes a line for the user. */
  readonly note: (text: string) => void;
}

interface Sides extends Pick<SyncOptions, "source" | "target" | "isUp"> {
  readonly local: LocalFolder;
  readonly folder: RemoteFolder;
}

function sidesOf({ from, to, isSystem }: SyncRequest, { client, clock, platform }: SyncEnvironment): Sides {
  const { local: root, remote, isUp } = direction(from, to);
  const local = new LocalFolder({ root, nowMs: () => clock.nowMs(), platform });
  const folder = new RemoteFolder({ client, root: remote, isSystem });
  const [source, target] = isUp ? [local, folder] : [folder, local];
  return { source, target, isUp, local, folder };
}

/** A sync of one local folder with one of the controller, with the state that is kept between two comparisons. */
class Sync {
  readonly local: LocalFolder;
  readonly isUp: boolean;
  readonly isExcluded: (key: string) => boolean;
  readonly #options: Omit<SyncOptions, "isExcluded">;
  readonly #state: SyncState;
  readonly #folder: RemoteFolder;

  constructor(request: SyncRequest, environment: SyncEnvironment) {
    const { local, folder, ...sides } = sidesOf(request, environment);
    this.isUp = sides.isUp;
    this.#folder = folder;
    this.local = local;
    this.isExcluded = exclusion(request.exclusion);
    const { isForced, isDeleting, isDry, isSystem } = request;
    const { signal, progress, controller } = environment;
    this.#options = { ...sides, isForced, isDeleting, isDry, signal, progress };
    this.#state = new SyncState(local.name, `${controller} ${isSystem ? "system:" : ""}${folder.name}`);
  }

  /** Compares once. What was done is in the state and in the result, also if a failure ended it early. */
  async once(): Promise<{
    readonly result: SyncResult;
    readonly folders: readonly string[];
    readonly error?: unknown;
  }> {
    const options = { ...this.#options, isExcluded: this.isExcluded };
    if (options.isDry) return synchronise(options, await this.#state.load());
    await this.requireLocal();
    return this.#state.locked(async () => {
      const done = await synchronise(options, await this.#state.load());
      const unsaved = await this.#saved(done.base);
      return { ...done, error: done.error ?? unsaved };
    });
  }

  /** Returns the failure. What was done stays done, so the result of the sync is told with it. */
  async #saved(base: Base): Promise<AppError | undefined> {
    try {
      await this.#state.save(base);
      return undefined;
    } catch (error) {
      const text = `The state of the sync could not be stored: ${errorText(error)}. The next sync takes the state before.`;
      return new AppError("unavailable", text, { cause: error });
    }
  }

  /** Makes the local folder if it is the target, and the source is there. `AppError("not_found")` otherwise. */
  async requireLocal(): Promise<string> {
    try {
      return await this.local.identity();
    } catch (error) {
      if (this.isUp || !isAppError(error, "not_found")) throw error;
      await this.#folder.list("", this.#options.signal);
      await this.local.makeFolder("");
      return this.local.identity();
    }
  }
}

/** Synchronises once. Returns the exit code. */
export async function syncOnce(request: SyncRequest, environment: SyncEnvironment): Promise<number> {
  const { result, error } = await new Sync(request, environment).once();
  await environment.told(result);
  if (error !== undefined) throw error;
  return exitCodeOf(result);
}

/** Synchronises until the signal fires. Returns the exit code of the last comparison. */
export async function syncWatching(request: SyncRequest, environment: SyncEnvironment): Promise<number> {
  if (request.isDry) throw new AppError("invalid", "--watch and --dry-run exclude each other.");
  const sync = new Sync(request, environment);
  const { clock, random, signal, note, told } = environment;
  const root = await sync.requireLocal();
  let exitCode = 0;
  const compare = async () => {
    if ((await sync.local.identity()) !== root)
      throw new AppError("not_found", `${sync.local.name} is another folder now: nothing was done. Start again.`);
    const { result, folders, error } = await sync.once();
    await told(result);
    if (error !== undefined) throw error;
    exitCode = exitCodeOf(result);
    return {
      folders: sync.isUp ? ["", ...folders] : [],
      isUnfinished: result.leftOut.some(({ isPassing }) => isPassing === true),
    };
  };
  const everyMs = sync.isUp ? FILE_SYNC_COMPARE_LOCAL_MS : FILE_SYNC_COMPARE_REMOTE_MS;
  await watchFolder({ changes: changesOf(sync, note), compare, everyMs, clock, random, signal, note });
  return exitCode;
}

/** The controller announces no changes of files, so a folder of it is only compared now and then. */
function changesOf({ isUp, isExcluded, local }: Sync, note: (text: string) => void): Changes {
  return isUp ? new FolderChanges({ root: local.name, isIgnored: isExcluded, note }) : UNANNOUNCED;
}

/** Copies what is in a folder into another one, over what is there, and keeps no state. Returns the exit code. */
export async function copyTree(request: SyncRequest, environment: SyncEnvironment): Promise<number> {
  const { source, target, isUp } = sidesOf(request, environment);
  const { signal, progress, told } = environment;
  const how = { isForced: true, isDeleting: false, isDry: false, isExcluded: exclusion(request.exclusion) };
  const { result, error } = await synchronise({ source, target, isUp, ...how, signal, progress }, NO_BASE);
  await told(result);
  if (error !== undefined) throw error;
  return exitCodeOf(result);
}
