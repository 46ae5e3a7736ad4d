import { createHash, randomBytes } from "node:crypto";
import { open, readFile, rename, rm, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { AppError } from "../../../common/errors.ts";
import { FILE_SYNC_STATE_MAX_BYTES } from "../../../common/limits.ts";
import { OWN_PREFIX } from "./excluded.ts";
import type { Base, BaseFile } from "./plan.ts";
import { isStored, type StoredState } from "./stored.ts";

/** The common entries before the first sync: none. */
export const NO_BASE: Base = {
  files: new Map<string, BaseFile>(),
  folders: new Set<string>(),
  sent: new Map<string, string>(),
};

/**
 * The base of a local folder and one folder of a controller, in a file in the local folder. Each controller and each
 * folder of it has its own file.
 */
export class SyncState {
  readonly #file: string;
  readonly #lock: string;
  readonly #target: string;
  #stored = "";

  /** `target` names the controller and the folder there. */
  constructor(root: string, target: string) {
    const name = `${OWN_PREFIX}${createHash("sha256").update(target).digest("hex").slice(0, 12)}`;
    this.#file = join(root, `${name}.json`);
    this.#lock = join(root, `${name}.lock`);
    this.#target = target;
  }

  /** Nothing if there was no sync. `AppError("invalid")` if the file is damaged. */
  async load(): Promise<Base> {
    try {
      const { size } = await stat(this.#file);
      if (size > FILE_SYNC_STATE_MAX_BYTES) throw this.#damaged();
      this.#stored = await readFile(this.#file, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return NO_BASE;
      throw error;
    }
    return this.#parsed(this.#stored);
  }

  /** Replaces the file as a whole, unless it says the same already. */
  async save({ files, folders, sent }: Base): Promise<void> {
    const value: StoredState = {
      format: 1,
      target: this.#target,
      files: [...files].sort(byPath).map(([path, file]) => ({ path, ...file })),
      folders: [...folders].sort(),
      ...(sent.size > 0 && { sent: [...sent].sort(byPath).map(([path, digest]) => ({ path, digest })) }),
    };
    const text = `${JSON.stringify(value)}\n`;
    if (text === this.#stored) return;
    const draft = `${this.#file}.${randomBytes(6).toString("hex")}`;
    try {
      const handle = await open(draft, "wx", 0o600);
      try {
        await handle.writeFile(text);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(draft, this.#file);
    } finally {
      await rm(draft, { force: true });
    }
    this.#stored = text;
  }

  /**
   * Does `work` while no other sync has the same two folders. `AppError("unavailable")` if one does. The lock of a process
   * of this machine that is gone is taken over.
   */
  async locked<T>(work: () => Promise<T>): Promise<T> {
    await this.#take();
    try {
      return await work();
    } finally {
      await rm(this.#lock, { force: true });
    }
  }

  async #take(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#makeLock();
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
      const [pid, host] = (await readFile(this.#lock, "utf8").catch(() => "")).trim().split(" ");
      if (attempt > 1 || host !== hostname() || isAlive(Number(pid)))
        throw new AppError(
          "unavailable",
          `Another sync of this folder is under way${host ? ` (process ${pid} on ${host})` : ""}. If it is not, delete ${this.#lock}.`,
        );
      await rm(this.#lock, { force: true });
    }
  }

  /** A lock that cannot be written, as on a full disk, does not stay. */
  async #makeLock(): Promise<void> {
    const handle = await open(this.#lock, "wx", 0o600);
    try {
      await handle.writeFile(`${process.pid} ${hostname()}\n`);
    } catch (error) {
      await rm(this.#lock, { force: true });
      throw error;
    } finally {
      await handle.close();
    }
  }

  #parsed(text: string): Base {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      throw this.#damaged();
    }
    if (!isStored(value) || value.target !== this.#target) throw this.#damaged();
    return {
      files: new Map(value.files.map(({ path, ...file }) => [path, file])),
      folders: new Set(value.folders),
      sent: new Map(value.sent?.map(({ path, digest }) => [path, digest])),
    };
  }

  #damaged(): AppError {
    return new AppError(
      "invalid",
      `${this.#file} is damaged. Delete it: the next sync compares all contents, and takes differences for conflicts.`,
    );
  }
}

function byPath([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
