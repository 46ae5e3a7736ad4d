import { dirname } from "node:path";
import type { Emission } from "../../../outbox/outbox.ts";
import { look, lookAll, type FileLook } from "../folder.ts";
import type { FollowedFile } from "../followed.ts";
import type { LogWork } from "../work.ts";
import { compareWith, firstBytes } from "./content.ts";
import type { Copies } from "./copies.ts";
import type { DirectoryScan } from "./directory-scan.ts";
import type { Endings } from "./endings.ts";
import type { FileState } from "./life.ts";
import { isYoungest, originsOf } from "./names.ts";
import type { RotationTracker } from "./rotation-tracker.ts";

interface Parts {
  readonly work: LogWork;
  readonly files: Map<number, FollowedFile>;
  readonly rotations: RotationTracker;
  readonly copies: Copies;
  readonly endings: Endings;
}

/** Tells in each scan where the followed lives are now, and which of them have lost their file. */
export class Locator {
  readonly #work: LogWork;
  readonly #files: Map<number, FollowedFile>;
  readonly #rotations: RotationTracker;
  readonly #copies: Copies;
  readonly #endings: Endings;
  /** Lives that left their home since the last scan. Other lives may have been there in between. */
  readonly #replaced = new Set<FollowedFile>();

  constructor({ work, files, rotations, copies, endings }: Parts) {
    this.#work = work;
    this.#files = files;
    this.#rotations = rotations;
    this.#copies = copies;
    this.#endings = endings;
  }

  /** Finds every followed life by its inode, or in a copy, and stores where it is now. */
  async locate(scan: DirectoryScan, signal: AbortSignal): Promise<void> {
    await this.#findAll(scan, signal);
    await this.#keepPaths(scan, signal);
  }

  async #findAll(scan: DirectoryScan, signal: AbortSignal): Promise<void> {
    const { dir } = this.#work.spec;
    const byId = new Map(scan.looks.map((at) => [at.id, at]));
    const displaced: FollowedFile[] = [];
    // If two lives have the same inode, it belongs to the later one.
    for (const file of [...this.#files.values()].sort((a, b) => b.state.serial - a.state.serial)) {
      file.displaced ||= scan.taken.has(file.state.id);
      const at = byId.get(file.state.id) ?? (await look(dir, file.state.path));
      if (at?.id === file.state.id && (await this.#isStill(file, at, { scan, signal }))) {
        this.#found(file, at, scan);
        await noteText(dir, at, file.state);
      } else displaced.push(file);
    }
    if (displaced.length === 0) return;
    // The file may have been renamed to a name that neither matches nor looks like that of a rotation.
    const folders = new Set(displaced.map(({ state }) => dirname(state.path)));
    const known = new Set(scan.looks.map(({ path }) => path));
    const others = await lookAll(
      dir,
      scan.files.filter((path) => folders.has(dirname(path)) && !known.has(path)),
    );
    for (const file of displaced) await this.#search(file, { scan, others, signal });
    await this.#dropEmpty(displaced, { scan, signal });
  }

  /** Drops displaced lives that were always empty. A gap reports those whose file has no name of a log any more. */
  async #dropEmpty(
    displaced: readonly FollowedFile[],
    { scan, signal }: { scan: DirectoryScan; signal: AbortSignal },
  ): Promise<void> {
    const empty = displaced.filter((file) => file.displaced && file.state.head === "");
    if (empty.length === 0) return;
    const named = new Set(scan.looks.map(({ id }) => id));
    const lost = empty.filter((file) => file.isHome && !named.has(file.state.id));
    const gaps = lost.flatMap((file) => this.#rotations.unknownGap(file));
    await this.#work.host.emit(gaps, { marks: empty.map((file) => file.unmark()), reserve: true, signal });
    for (const file of empty) {
      await file.close();
      this.#files.delete(file.state.serial);
    }
  }

  /** Stores the new paths of moved lives. After a restart, another file at an old path must not count as theirs. */
  async #keepPaths(scan: DirectoryScan, signal: AbortSignal): Promise<void> {
    const marks = [...this.#files.values()].filter((file) => file.moved).map((file) => file.mark());
    const gaps: Emission[] = [];
    for (const file of this.#replaced) gaps.push(...(await this.#rotations.gapAfter(file, scan.looks)));
    if (marks.length > 0) await this.#work.host.emit(gaps, { marks, reserve: true, signal });
    for (const file of this.#files.values()) file.moved = false;
    for (const file of this.#replaced) if (file.isHome) file.atHome = this.#rotations.beforeLook(file.state.home);
    this.#replaced.clear();
  }

  /** True for a name under which scans find unseen lives: it matches, or a rotation gives it to this log. */
  #tellsOfOthers(path: string, home: string): boolean {
    return this.#work.match.test(path) || originsOf(path).includes(home);
  }

  async #search(
    file: FollowedFile,
    { scan, others, signal }: { scan: DirectoryScan; others: readonly FileLook[]; signal: AbortSignal },
  ): Promise<void> {
    const { state } = file;
    const renamed = others.find(({ id }) => id === state.id);
    if (renamed && (await this.#isStill(file, renamed, { scan, signal }))) return this.#found(file, renamed, scan);
    const copy = file.isHome && (file.displaced || file.lastMiss) ? await this.#copies.of(file.state, scan) : undefined;
    // A packed file that has all of it is better than a copy that has its beginning.
    const isPacked = copy?.same.short && (await this.#endings.isPacked(file, scan, signal));
    if (!copy || isPacked) return file.miss();
    if (!isYoungest(copy.at.path, state.home, [...scan.files, ...scan.packed])) file.losses.forget();
    await file.moveTo(copy, signal);
    scan.taken.add(copy.at.id);
  }

  /** True if the file has the content of this life. Its inode can be reused, and the file can be truncated. */
  async #isStill(
    file: FollowedFile,
    at: FileLook,
    { scan, signal }: { scan: DirectoryScan; signal: AbortSignal },
  ): Promise<boolean> {
    const { state } = file;
    if (scan.taken.has(at.id)) return false;
    const isUnchanged = at.size === state.size && at.mtimeMs === state.mtimeMs;
    // The path must be the same. An open file that was moved may have been truncated and written again before, and its
    // copy is searched for only at home. `rotation.test.ts`, seed 7, fails without this check, mostly under load.
    const isOpenThere = file.isOpen && at.path === state.path;
    if (!file.displaced && at.size >= state.size && (isOpenThere || isUnchanged)) return true;
    // An empty file has no content that identifies it under another name. While it is open, its handle identifies it.
    const isNew = state.head === "" && at.path !== state.path;
    if (isNew && file.isOpen && !this.#tellsOfOthers(at.path, state.home)) return true;
    const same = isNew ? "other" : await compareWith(this.#work.spec.dir, at, state);
    if (typeof same === "string" || same.short) {
      if (same !== "unknown") await file.displace();
      return false;
    }
    if (same.size < state.size) await file.moveTo({ at, same }, signal);
    return true;
  }

  #found(file: FollowedFile, at: FileLook, scan: DirectoryScan): void {
    scan.taken.add(at.id);
    const { state } = file;
    const left = file.isHome && at.path !== state.home && !this.#tellsOfOthers(at.path, state.home);
    const relinked = file.isHome && at.path === state.home && at.link !== state.link;
    if (left || relinked) this.#replaced.add(file);
    else if (at.path === state.home) file.atHome = this.#rotations.beforeLook(state.home);
    file.moved ||= state.path !== at.path || relinked;
    Object.assign(state, { path: at.path, link: at.link });
    file.found();
    if (at.size !== state.size || at.mtimeMs !== state.mtimeMs) file.dirty = true;
    // Its whole content is in the outbox, perhaps since before a restart.
    else if (!file.isOpen && !file.waiting && at.size === state.offset) file.dirty = false;
  }
}

/** Records the first text of a file that is perhaps not read soon, so that its truncation is noticed. */
async function noteText(root: string, at: FileLook, state: FileState): Promise<void> {
  const head = state.head === "" && at.size > 0 ? await firstBytes(root, at) : undefined;
  if (head) Object.assign(state, { size: at.size, head });
}
