import { LOG_COPY_MIN_BYTES, LOG_COPY_WATCH_MS } from "../../../../common/limits.ts";
import { Beginnings } from "./beginnings.ts";
import { compareWith, proveCopy } from "./content.ts";
import type { FileLook } from "../folder.ts";
import type { FollowedFile } from "../followed.ts";
import type { Copy, FileState } from "./life.ts";
import { compareGenerations, originsOf } from "./names.ts";
import type { DirectoryScan } from "./directory-scan.ts";
import type { LogWork } from "../work.ts";

/** Copies that rotations make of followed files before they cut them off. */
export class Copies {
  readonly #work: LogWork;
  readonly #files: ReadonlyMap<number, FollowedFile>;
  readonly #beginnings = new Beginnings();
  /** Copies that are being made, by inode, and since when: as the last look found them. */
  #sinceMs: ReadonlyMap<string, number> = new Map();
  /** The same as this look finds them. */
  #found = new Map<string, number>();

  constructor(work: LogWork, files: ReadonlyMap<number, FollowedFile>) {
    this.#work = work;
    this.#files = files;
  }

  /** A file is being copied and will be cut off. */
  get underWay(): boolean {
    const nowMs = this.#work.host.clock.monotonicMs();
    return [...this.#sinceMs.values()].some((sinceMs) => nowMs - sinceMs < LOG_COPY_WATCH_MS);
  }

  /** Compares what copies have grown by, while their originals are there. */
  compare(): Promise<void> {
    return this.#beginnings.goOn(this.#work.spec.dir);
  }

  beginLook(): void {
    this.#found = new Map();
  }

  /** Copies that this look did not find are made or gone. */
  endLook(): void {
    this.#sinceMs = this.#found;
    this.#beginnings.endLook();
  }

  /** The copy that was made of the file before it was cut off; the youngest of several. */
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
      // Compared while the original was still there.
      const provenBytes = Math.max(proof.provenBytes, this.#beginnings.provenBytes(at.id, state.id));
      const copy = { at, same, unprovenBytes: Math.max(0, same.size - provenBytes) };
      if (
        provenBytes >= LOG_COPY_MIN_BYTES &&
        provenBytes > (partly ? partly.same.size - (partly.unprovenBytes ?? 0) : 0)
      )
        partly = copy;
    }
    return partly;
  }

  /**
   * True for a copy of a followed file, or one that is being made: the original is read where it is, and the copy once
   * the original is cut off.
   */
  async includes(at: FileLook, scan: DirectoryScan): Promise<boolean> {
    if (!(await this.#isCopy(at, scan))) return false;
    this.#found.set(at.id, this.#sinceMs.get(at.id) ?? this.#work.host.clock.monotonicMs());
    return true;
  }

  /** By its name. Its time says nothing: a writer that is not halted writes to the original after the copy was made. */
  #mayBeCopy(at: FileLook, { id, home }: FileState, scan: DirectoryScan): boolean {
    if (at.id === id || at.path === home || !originsOf(at.path).includes(home)) return false;
    return !this.#isFollowedForItself(at, scan);
  }

  /** A log of its own is no copy. `app-1.log` beside `app.log` is a log of its own as soon as it was followed. */
  #isFollowedForItself({ path, id }: FileLook, { rotations }: DirectoryScan): boolean {
    if (!this.#work.match.test(path)) return false;
    const origins = originsOf(path).filter((origin) => rotations.has(origin));
    if (origins.some((origin) => path.startsWith(origin))) return false;
    return (
      origins.length === 0 || [...this.#files.values()].some(({ state }) => state.home === path && state.id === id)
    );
  }

  async #isCopy(at: FileLook, scan: DirectoryScan): Promise<boolean> {
    const { dir } = this.#work.spec;
    if (this.#isFollowedForItself(at, scan)) return false;
    const origins = new Set(originsOf(at.path));
    // A file with the inode of a life that was cut off is its next life.
    const followed = [...this.#files.values()].filter(
      ({ state, displaced }) => origins.has(state.home) && !(displaced && state.id === at.id),
    );
    // It may be the copy of a file that this look has missed.
    if (followed.some(({ missing, gone }) => missing && !gone)) return true;
    const others = scan.looks.filter(
      ({ id, path }) => id !== at.id && (origins.has(path) || followed.some(({ state }) => state.id === id)),
    );
    for (const other of others) {
      // Renamed meanwhile, or begun and finished after the look: the next look decides.
      if ((await this.#beginnings.isBeginning(dir, at, other)) !== false || at.size === 0) return true;
    }
    return at.size > 0 && this.#wasCutOff(followed, scan);
  }

  /** A file that was cut off while its copy was compared with it: the next look decides. */
  async #wasCutOff(files: readonly FollowedFile[], scan: DirectoryScan): Promise<boolean> {
    for (const file of files.filter(({ isHome, state }) => isHome && state.head !== "")) {
      const at = scan.looks.find(({ id }) => id === file.state.id);
      const same = at && (await compareWith(this.#work.spec.dir, at, file.state));
      if (typeof same === "object" && !same.short) continue;
      if (same !== undefined && same !== "unknown") await file.displace();
      await file.miss();
      return true;
    }
    return false;
  }
}
