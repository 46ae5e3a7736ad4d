import { LOG_COPY_MIN_BYTES, LOG_COPY_WATCH_MS } from "../../../../common/limits.ts";
import { Beginnings } from "./beginnings.ts";
import { compareWith, proveCopy } from "./content.ts";
import type { FileLook } from "../folder.ts";
import type { FollowedFile } from "../followed.ts";
import type { Copy, FileState } from "./life.ts";
import { compareGenerations, originsOf } from "./names.ts";
import type { DirectoryScan } from "./directory-scan.ts";
import type { LogWork } from "../work.ts";

/** Finds the copies that rotations make of followed files before they truncate them. */
export class Copies {
  readonly #work: LogWork;
  readonly #files: ReadonlyMap<number, FollowedFile>;
  readonly #beginnings = new Beginnings();
  /** Copies that the last scan found, perhaps unfinished, by id, and when each was first found. */
  #sinceMs: ReadonlyMap<string, number> = new Map();
  /** The same for the current scan. */
  #found = new Map<string, number>();
  /** Logs with a file that may be a copy of a life which this scan has missed. */
  readonly #unsure = new Set<string>();

  constructor(work: LogWork, files: ReadonlyMap<number, FollowedFile>) {
    this.#work = work;
    this.#files = files;
  }

  /** True while a rotation copies a followed file, for at most `LOG_COPY_WATCH_MS`. The file will be truncated. */
  get underWay(): boolean {
    const nowMs = this.#work.host.clock.monotonicMs();
    return [...this.#sinceMs.values()].some((sinceMs) => nowMs - sinceMs < LOG_COPY_WATCH_MS);
  }

  /** Compares the new bytes of unfinished copies with their originals, before the originals are truncated. */
  compare(): Promise<void> {
    return this.#beginnings.goOn(this.#work.spec.dir);
  }

  /** True if the next scan may find an older life of the log, so newer files must wait. */
  isAwaited(home: string): boolean {
    return this.#unsure.has(home);
  }

  beginLook(): void {
    this.#unsure.clear();
    this.#found = new Map();
  }

  /** Forgets copies that this scan did not find: they are finished or gone. */
  endLook(): void {
    this.#sinceMs = this.#found;
    this.#beginnings.endLook();
  }

  /**
   * Finds the copy that was made of a file before it was truncated. It is the youngest one that has all bytes that were
   * read. Without one, it is the one with the most proven bytes, at least `LOG_COPY_MIN_BYTES`.
   */
  async of(state: FileState, scan: DirectoryScan): Promise<Copy | undefined> {
    let partly: Copy | undefined;
    if (state.head === "") return undefined;
    const candidates = scan.looks.filter(
      (at) => !scan.taken.has(at.id) && at.size > 0 && this.#mayBeCopy(at, state, scan),
    );
    candidates.sort((a, b) => compareGenerations(b.path, a.path));
    for (const at of candidates) {
      const proof = await proveCopy(this.#work.spec.dir, at, state);
      if (!proof) continue;
      const { same } = proof;
      if (!same.short) return { at, same };
      // More bytes may have been compared while the original was still complete.
      const provenBytes = Math.max(proof.provenBytes, this.#beginnings.provenBytes(at.id, state.id));
      const copy = { at, same, unprovenBytes: Math.max(0, same.size - provenBytes) };
      if (copy.unprovenBytes > 0 && (await this.#isOfNextLife(at, state, scan))) continue;
      if (
        provenBytes >= LOG_COPY_MIN_BYTES &&
        provenBytes > (partly ? partly.same.size - (partly.unprovenBytes ?? 0) : 0)
      )
        partly = copy;
    }
    return partly;
  }

  /** True if the file is a copy of the life that is at the home of a truncated one now. */
  async #isOfNextLife(at: FileLook, { home }: FileState, { looks }: DirectoryScan): Promise<boolean> {
    const next = looks.find(({ path }) => path === home);
    return next !== undefined && (await this.#beginnings.isBeginning(this.#work.spec.dir, at, next)) === true;
  }

  /**
   * True for a copy of a followed file, also an unfinished one. A copy is not followed as a new file: the original is
   * read until it is truncated, and the copy after that.
   */
  async includes(at: FileLook, scan: DirectoryScan): Promise<boolean> {
    if (!(await this.#isCopy(at, scan))) return false;
    this.#found.set(at.id, this.#sinceMs.get(at.id) ?? this.#work.host.clock.monotonicMs());
    return true;
  }

  /**
   * True if the file can be a copy, by its name. Its time does not matter: a writer that is not stopped writes to the
   * original after the copy is made.
   */
  #mayBeCopy(at: FileLook, { id, home }: FileState, scan: DirectoryScan): boolean {
    if (at.id === id || at.path === home || !originsOf(at.path).includes(home)) return false;
    return !this.#isFollowedForItself(at, scan);
  }

  /**
   * True if the file is a log of its own, and so no copy. `app-1.log` beside `app.log` is one as soon as it is
   * followed.
   */
  #isFollowedForItself({ path, id }: FileLook, { homes }: DirectoryScan): boolean {
    if (!this.#work.match.test(path)) return false;
    const origins = originsOf(path).filter((origin) => homes.has(origin));
    if (origins.some((origin) => path.startsWith(origin))) return false;
    return (
      origins.length === 0 || [...this.#files.values()].some(({ state }) => state.home === path && state.id === id)
    );
  }

  async #isCopy(at: FileLook, scan: DirectoryScan): Promise<boolean> {
    const { dir } = this.#work.spec;
    if (this.#isFollowedForItself(at, scan)) return false;
    const origins = new Set(originsOf(at.path));
    // A file with the inode of a truncated life is its next life.
    const followed = [...this.#files.values()].filter(
      ({ state, displaced }) => origins.has(state.home) && !(displaced && state.id === at.id),
    );
    // It may be the copy of a file that this scan has missed.
    const missed = followed.filter(({ missing, gone }) => missing && !gone);
    for (const { state } of missed) this.#unsure.add(state.home);
    if (missed.length > 0) return true;
    const others = scan.looks.filter(
      ({ id, path }) => id !== at.id && (origins.has(path) || followed.some(({ state }) => state.id === id)),
    );
    for (const other of others) {
      // The answer is undefined if a file was renamed meanwhile. A copy that was empty in this scan may be complete by
      // now. In both cases the next scan decides.
      if ((await this.#beginnings.isBeginning(dir, at, other)) !== false || at.size === 0) return true;
    }
    return at.size > 0 && this.wasCutOff(followed, scan);
  }

  /**
   * True if one of the files was truncated since this scan has found it. The next scan decides about copies and later
   * lives.
   */
  async wasCutOff(files: readonly FollowedFile[], scan: DirectoryScan): Promise<boolean> {
    for (const file of files.filter(
      ({ isHome, displaced, gone, state }) => isHome && !displaced && !gone && state.head !== "",
    )) {
      const at = scan.looks.find(({ id }) => id === file.state.id);
      const same = at && (await compareWith(this.#work.spec.dir, at, file.state));
      if (typeof same === "object" && !same.short) continue;
      if (same !== undefined && same !== "unknown") await file.displace();
      await file.miss();
      this.#unsure.add(file.state.home);
      return true;
    }
    return false;
  }
}
