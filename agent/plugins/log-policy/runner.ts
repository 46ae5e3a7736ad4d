import { watch, type FSWatcher } from "node:fs";
import { join } from "node:path";
import {
  LOG_COPY_LOOK_MS,
  LOG_FINAL_MS,
  LOG_GATHER_MS,
  LOG_OPEN_FILES_MAX,
  LOG_PARALLEL,
  LOG_POLL_MS,
  LOG_POLL_UNWATCHED_MS,
} from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runner } from "../../policies/plugin.ts";
import { LogFiles } from "./files.ts";
import type { FollowedFile } from "./followed.ts";
import { Switches } from "./rotation/switches.ts";
import type { LogWork } from "./work.ts";

/**
 * Runs a log policy. It wakes up when something changes in the folder, finds new files, and reads files that have
 * grown.
 */
export class LogRunner implements Runner {
  readonly #work: LogWork;
  readonly #files: LogFiles;
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #switches = new Switches();
  #unwatched = false;
  #rescan = true;
  #wake: () => void = () => undefined;
  #awake = true;
  /** Since the last pause, a file appeared or disappeared under a name that a rotation gives to a followed log. */
  #isRotated = false;
  #hasten: () => void = () => undefined;

  constructor(work: LogWork) {
    this.#work = work;
    this.#files = new LogFiles(work, this.#switches);
  }

  get problem(): string | undefined {
    return this.#files.problem;
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#files.load();
      // The watch begins before the first scan, so that a change during the scan wakes the runner.
      this.#watch([""]);
      while (!signal.aborted) {
        this.#awake = false;
        if (this.#rescan) await this.#scan(signal);
        await this.#readAll(signal);
        await this.#files.closeIdle(LOG_OPEN_FILES_MAX);
        await this.#sleep(signal);
      }
    } finally {
      this.#watch([]);
      await this.#files.closeAll();
      this.#rescan = true;
    }
  }

  async #scan(signal: AbortSignal): Promise<void> {
    this.#rescan = false;
    const folders = await this.#files.scan(signal);
    this.#watch(folders);
    if (this.#files.missing) this.#rescan = this.#awake = true;
  }

  #watch(folders: readonly string[]): void {
    const wanted = new Set(folders);
    for (const [folder, watcher] of this.#watchers) {
      if (wanted.has(folder)) continue;
      this.#unwatch(folder, watcher);
    }
    this.#unwatched = false;
    for (const folder of wanted) if (!this.#watchers.has(folder)) this.#watchOne(folder);
  }

  #watchOne(folder: string): void {
    try {
      const watcher = watch(join(this.#work.spec.dir, folder), { persistent: false }, (event, name) =>
        this.#changed(event, folder, name),
      );
      watcher.on("error", () => {
        this.#unwatch(folder, watcher);
        this.#unwatched = true;
      });
      this.#watchers.set(folder, watcher);
      this.#switches.watch(folder);
      // A file may have been created between the scan and the beginning of the watch.
      this.#rescan = true;
      this.#rouse();
    } catch {
      this.#unwatched = true;
    }
  }

  #unwatch(folder: string, watcher: FSWatcher): void {
    watcher.close();
    this.#watchers.delete(folder);
    this.#switches.unwatch(folder);
  }

  #changed(event: string, folder: string, name: string | null): void {
    const path = name === null || folder === "" ? name : `${folder}/${name}`;
    if (event === "change" && path !== null && !this.#files.touch(path)) return;
    if (event !== "change" || path === null) this.#rescan = true;
    if (event !== "change" && path !== null && this.#files.mayBeRotated(path)) {
      this.#isRotated = true;
      this.#hasten();
    }
    if (path === null) this.#switches.noteUnknown(folder);
    else if (event !== "change" && this.#files.mayBeHome(path)) this.#switches.note(folder, path);
    this.#rouse();
  }

  #rouse(): void {
    this.#awake = true;
    this.#wake();
  }

  async #readAll(signal: AbortSignal): Promise<void> {
    const logs = this.#files.dirtyLogs();
    const workers = Array.from({ length: Math.min(LOG_PARALLEL, logs.length) }, async () => {
      for (let log = logs.shift(); log && !signal.aborted; log = logs.shift()) await this.#readLog(log, signal);
    });
    await Promise.all(workers);
  }

  /** Reads the files of one log in their order, each to its end. */
  async #readLog(log: readonly FollowedFile[], signal: AbortSignal): Promise<void> {
    for (const file of log) {
      if (signal.aborted || !file.dirty) continue;
      const outcome = await file.read(signal);
      // The next scan finds the file, or finds that it is gone.
      if (outcome !== "read") this.#rescan = true;
      if (outcome !== "read" || file.dirty) this.#rouse();
    }
  }

  async #sleep(signal: AbortSignal): Promise<void> {
    const { clock } = this.#work.host;
    if (this.#files.copying && !this.#files.missing) {
      await wait(clock, LOG_COPY_LOOK_MS, signal);
      await this.#files.compareCopies();
      return this.#files.touchHomes();
    }
    if (!this.#awake) {
      const pollMs = this.#unwatched ? LOG_POLL_UNWATCHED_MS : LOG_POLL_MS;
      const timedOut = await this.#waitForWake(this.#files.waiting ? Math.min(pollMs, LOG_FINAL_MS) : pollMs, signal);
      if (timedOut) {
        this.#rescan = true;
        this.#files.touchAll();
      }
    }
    await this.#gather(signal);
  }

  /**
   * Waits `LOG_GATHER_MS` for more changes. If a rotation begins, it returns at once: the next write to the log would
   * hide the writer's old position, which shows how long the truncated file was.
   */
  async #gather(signal: AbortSignal): Promise<void> {
    if (this.#isRotated) return void (this.#isRotated = false);
    const rotated = new AbortController();
    this.#hasten = () => rotated.abort();
    await wait(this.#work.host.clock, LOG_GATHER_MS, signal, rotated.signal);
    this.#hasten = () => undefined;
    this.#isRotated = false;
  }

  /** Waits for a change, the signal, or `delayMs`. True after `delayMs` without a change. */
  #waitForWake(delayMs: number, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (timedOut: boolean) => {
        cancel();
        signal.removeEventListener("abort", abort);
        this.#wake = () => undefined;
        resolve(timedOut);
      };
      const abort = () => end(false);
      const cancel = this.#work.host.clock.after(delayMs, () => end(true));
      this.#wake = () => end(false);
      signal.addEventListener("abort", abort, { once: true });
      if (signal.aborted || this.#awake) end(false);
    });
  }
}
