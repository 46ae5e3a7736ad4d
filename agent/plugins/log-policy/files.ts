import { dirname } from "node:path";
import { LOG_TIME_GRAIN_MS } from "../../../common/limits.ts";
import { policyMarks } from "../../policies/host.ts";
import type { Emission } from "../../outbox/outbox.ts";
import { compareWith, firstBytes, NO_TAIL } from "./rotation/content.ts";
import { Copies } from "./rotation/copies.ts";
import { Endings } from "./rotation/endings.ts";
import { Complaints } from "./complaints.ts";
import { folderProblem, look, lookAll, walk, type FileLook } from "./folder.ts";
import { FollowedFile } from "./followed.ts";
import { fileMarks, type FileState } from "./rotation/life.ts";
import { RotationTracker } from "./rotation/rotation-tracker.ts";
import { isNumbered, isYoungest, originsOf } from "./rotation/names.ts";
import { inOrder, livesByHome, unreadAfter, unseenLosses, type Found } from "./rotation/found.ts";
import { MissedLives, type UnreadLife } from "./rotation/missed.ts";
import type { DirectoryScan } from "./rotation/directory-scan.ts";
import { dirtyLogs } from "./rotation/turns.ts";
import { Unpacking } from "./unpacking.ts";
import type { Switches } from "./rotation/switches.ts";
import type { LogWork } from "./work.ts";

/**
 * Finds and follows the files of a policy, each life of a file once. A life is identified by its inode and by the
 * content that was read. It is followed to its end wherever a rotation moves it: under another name, even if that does
 * not match, or in the copy that is made before the file is truncated.
 */
export class LogFiles {
  readonly #work: LogWork;
  readonly #files = new Map<number, FollowedFile>();
  #nextSerial = 1;
  #sinceMs = Infinity;
  #missed: MissedLives | undefined;
  #endings: Endings | undefined;
  readonly #complaints: Complaints;
  /** Homes that were followed when the last scan began. */
  #formerHomes: readonly string[] = [];
  /** A file changed during the scan, so another scan is needed. */
  #unsure = false;
  readonly #copies: Copies;
  readonly #unpacking: Unpacking;
  readonly #rotations: RotationTracker;
  /** Lives that left their home since the last scan. Other lives may have been there in between. */
  readonly #replaced = new Set<FollowedFile>();

  constructor(work: LogWork, switches: Switches) {
    this.#work = work;
    this.#complaints = new Complaints(work);
    this.#rotations = new RotationTracker(work.spec.dir, switches);
    this.#copies = new Copies(work, this.#files);
    this.#unpacking = new Unpacking(work.packedLookBytes);
  }

  async load(): Promise<void> {
    const { host, policy } = this.#work;
    const since = { key: `${policyMarks(policy.name)}since`, value: String(host.clock.nowMs()) };
    if (host.mark(since.key) === undefined) await host.emit([], { marks: [since], reserve: true });
    this.#sinceMs = Number(host.mark(since.key));
    const [work, sinceMs, unpacking, copies] = [this.#work, this.#sinceMs, this.#unpacking, this.#copies];
    const missed = (this.#missed = new MissedLives({ work, sinceMs, unpacking, copies }));
    this.#endings = new Endings({ work, files: this.#files, rotations: this.#rotations, missed, unpacking });
    this.#files.clear();
    this.#replaced.clear();
    this.#formerHomes = [];
    for (const [, value] of host.marks(fileMarks(policy.name))) {
      const state: FileState = JSON.parse(value);
      this.#files.set(state.serial, new FollowedFile(this.#work, state));
      this.#nextSerial = Math.max(this.#nextSerial, state.serial + 1);
    }
    this.#rotations.begin(this.#files.values());
  }

  /**
   * True if the last scan must be repeated: a packed file is not read to its end, or a life was not found, perhaps
   * because it was renamed meanwhile.
   */
  get missing(): boolean {
    return this.#unsure || this.#unpacking.isUnderWay || [...this.#files.values()].some((file) => file.missing);
  }

  /** The reason why the last scan could not read something. */
  get problem(): string | undefined {
    return this.#complaints.problem;
  }

  get waiting(): boolean {
    return [...this.#files.values()].some((file) => file.waiting);
  }

  /** True while a file is copied and will be truncated: lines written after the copy must be read before that. */
  get copying(): boolean {
    return this.#copies.underWay;
  }

  compareCopies(): Promise<void> {
    return this.#copies.compare();
  }

  /** Marks the followed files at a path as changed. False when there is none. */
  touch(path: string): boolean {
    let touched = false;
    for (const file of this.#files.values()) {
      if (file.state.path !== path) continue;
      file.dirty = true;
      touched = true;
    }
    return touched;
  }

  /** True if the path matches, or is the home of a followed file. */
  mayBeHome(path: string): boolean {
    return this.#work.match.test(path) || [...this.#files.values()].some(({ state }) => state.home === path);
  }

  /** True for a name that a rotation may give to a followed log. */
  mayBeRotated(path: string): boolean {
    const origins = new Set(originsOf(path));
    return [...this.#files.values()].some(({ state }) => origins.has(state.home));
  }

  touchHomes(): void {
    for (const file of this.#files.values()) if (file.isOpen && file.isHome) file.dirty = true;
  }

  touchAll(): void {
    for (const file of this.#files.values()) if (file.isOpen || file.waiting) file.dirty = true;
  }

  /** Logs with something to read. The files of each log are in reading order. */
  dirtyLogs(): FollowedFile[][] {
    this.#work.writers.beginLook();
    const isAwaited = (home: string) => this.#missed?.isAwaited(home) === true || this.#copies.isAwaited(home);
    return dirtyLogs(this.#files.values(), isAwaited);
  }

  /** Finds new, renamed, truncated and deleted files. Answers the folders to watch. */
  async scan(signal: AbortSignal): Promise<readonly string[]> {
    const { dir } = this.#work.spec;
    const atMs = this.#work.host.clock.nowMs();
    this.#unsure = false;
    const homes = new Set([...this.#files.values()].map(({ state }) => state.home));
    const followedHomes = [...homes];
    this.#rotations.beginLook(homes);
    this.#copies.beginLook();
    this.#work.writers.beginLook();
    this.#unpacking.beginLook();
    this.#complaints.beginLook(await folderProblem(dir));
    const { files, packed, folders, leftOut } = await walk(dir);
    for (const reason of leftOut) this.#complaints.add(reason);
    const wanted = files.filter((path) => this.#work.match.test(path));
    for (const path of wanted) homes.add(path);
    const rotated = files.filter(
      (path) => !this.#work.match.test(path) && originsOf(path).some((origin) => homes.has(origin)),
    );
    const scan: DirectoryScan = {
      atMs,
      files,
      packed,
      homes,
      looks: await lookAll(dir, [...wanted, ...rotated], (reason) => this.#complaints.add(reason)),
      taken: new Set(),
    };
    await this.#locate(scan, signal);
    await this.#keepPaths(scan, signal);
    const found = await this.#unknown(scan);
    this.#formerHomes = followedHomes;
    this.#copies.endLook();
    if (found.length > 0)
      this.#work.host.log("debug", "files found", { policy: this.#work.policy.name, dir, count: found.length });
    await this.#endings?.closeGone(scan, signal);
    const { lives, unread } = (await this.#missed?.find(scan, this.#files.values(), signal)) ?? NOTHING_MISSED;
    const left = await this.#follow([...lives, ...found], scan, signal);
    await this.#endings?.decide([...unread, ...left], signal);
    // Read the packed lives before the lines of younger files.
    if (lives.length > 0) await this.#endings?.closeGone(scan, signal);
    await this.#unpacking.endLook();
    await this.#rotations.endLook(this.#files.values(), scan);
    return folders;
  }

  /** Closes the least recently changed files if more than `openMax` are open. A file with changes is opened again. */
  async closeIdle(openMax: number): Promise<void> {
    const open = [...this.#files.values()].filter((file) => file.isOpen && !file.gone);
    open.sort((a, b) => a.changedMs - b.changedMs);
    for (const file of open.slice(0, Math.max(0, open.length - openMax))) await file.close();
  }

  async closeAll(): Promise<void> {
    await this.#unpacking.close();
    for (const file of this.#files.values()) await file.close();
  }

  /** Finds every followed life by its inode, or in a copy. */
  async #locate(scan: DirectoryScan, signal: AbortSignal): Promise<void> {
    const { dir } = this.#work.spec;
    const byId = new Map(scan.looks.map((at) => [at.id, at]));
    const displaced: FollowedFile[] = [];
    // If two lives have the same inode, it belongs to the later one.
    for (const file of [...this.#files.values()].sort((a, b) => b.state.serial - a.state.serial)) {
      file.displaced ||= scan.taken.has(file.state.id);
      const at = byId.get(file.state.id) ?? (await look(dir, file.state.path));
      if (at?.id === file.state.id && (await this.#isStill(file, at, { scan, signal }))) {
        this.#isAt(file, at, scan);
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
    if (renamed && (await this.#isStill(file, renamed, { scan, signal }))) return this.#isAt(file, renamed, scan);
    const copy = file.isHome && (file.displaced || file.lastMiss) ? await this.#copies.of(file.state, scan) : undefined;
    // A packed file that has all of it is better than a copy that has its beginning.
    const isPacked = copy?.same.short && (await this.#endings?.isPacked(file, scan, signal));
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

  #isAt(file: FollowedFile, at: FileLook, scan: DirectoryScan): void {
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

  /** Files that are not followed yet: those that match, and rotated lives that no earlier scan has seen. */
  async #unknown(scan: DirectoryScan): Promise<Found[]> {
    const found: Found[] = [];
    const lives = livesByHome(this.#files.values(), this.#formerHomes);
    const fresh = scan.looks.filter(({ id }) => !scan.taken.has(id));
    const newHomes = new Set(fresh.filter(({ path }) => !lives.get(path)?.length).map(({ path }) => path));
    for (const at of fresh) {
      if (scan.taken.has(at.id)) continue;
      const home =
        originsOf(at.path).find((origin) =>
          this.#wasMissed(at, origin, { lives: lives.get(origin), isNew: newHomes.has(origin) }),
        ) ?? (this.#work.match.test(at.path) ? at.path : undefined);
      if (home === undefined) continue;
      if (await this.#copies.includes(at, scan)) continue;
      scan.taken.add(at.id);
      found.push({ at, home });
      // The position of the writer is that of a later life.
      if (at.path !== home) for (const file of lives.get(home) ?? []) if (file.displaced) file.losses.forget();
    }
    return found;
  }

  /**
   * True if the file is a life of `home` that no scan has seen, written since the policy began. If no life of `home` is
   * followed, `home` must be new too. Otherwise the name has a number or a day, or a life of `home` was moved or
   * truncated. A matching file is a log of its own, unless its name is a followed `home` plus a number or a day.
   */
  #wasMissed(
    at: FileLook,
    home: string,
    { lives, isNew }: { lives: readonly FollowedFile[] | undefined; isNew: boolean },
  ): boolean {
    const numbered = isNumbered(at.path, home);
    if (this.#work.match.test(at.path) && !(numbered && at.path.startsWith(home) && lives)) return false;
    // File times are coarse.
    if (at.mtimeMs < this.#sinceMs - LOG_TIME_GRAIN_MS) return false;
    if (!lives || (lives.length === 0 && isNew)) return isNew;
    return numbered || lives.some((file) => file.missing || file.displaced || !file.isHome);
  }

  /** Follows files in order, up to `filesMax`. Answers the packed lives beyond that: no later scan reads them. */
  async #follow(found: readonly Found[], scan: DirectoryScan, signal: AbortSignal): Promise<readonly UnreadLife[]> {
    const { spec, host, filesMax } = this.#work;
    const files = unreadAfter(found, this.#files.values());
    const marks = files.map((file) => file.unmark());
    const states = inOrder(found, this.#work);
    const room = Math.max(0, filesMax - this.#files.size);
    const left = states.slice(room).filter(({ head }) => head !== undefined);
    const unread = left.map(({ at, home }) => ({ home, bytes: at.size }));
    const created: FollowedFile[] = [];
    for (const { at, head: ofPacked, ...named } of states.slice(0, room)) {
      const head = ofPacked ?? (await firstBytes(spec.dir, at));
      // The file was truncated or renamed since the scan looked at it. The next scan decides.
      if (head === undefined) this.#unsure = true;
      else created.push(this.#create(at, { ...named, head, seenMs: scan.atMs }));
    }
    if (room < states.length) this.#complaints.add(`More than ${filesMax} files match; the rest is not followed.`);
    const renumbered = files.map(
      ({ state, atHome }) => new FollowedFile(this.#work, { ...state, serial: this.#nextSerial++ }, atHome),
    );
    const all = [...created, ...renumbered];
    if (all.length === 0) return unread;
    const gaps = await unseenLosses(all, found, scan.looks);
    await host.emit(gaps, { marks: [...marks, ...all.map((file) => file.mark())], reserve: true, signal });
    for (const file of files) {
      await file.close();
      this.#files.delete(file.state.serial);
    }
    for (const file of all) this.#files.set(file.state.serial, file);
    return unread;
  }

  #create(at: FileLook, named: Pick<FileState, "home" | "groups" | "place" | "log" | "head" | "seenMs">): FollowedFile {
    const { id, path, size, birthMs = 0, link } = at;
    const serial = this.#nextSerial++;
    const nothing = { offset: 0, tail: NO_TAIL, skipping: false };
    const isEmptied = this.#rotations.wasEmptied(at, this.#sinceMs);
    const mtimeMs = isEmptied ? birthMs : at.mtimeMs;
    const seenMs = isEmptied ? birthMs : named.seenMs;
    const state = { ...named, ...nothing, serial, generation: `${id}:${serial}`, path, id, size, mtimeMs, seenMs };
    return new FollowedFile(this.#work, { ...state, ...(link && { link }) }, this.#rotations.beforeLook(path));
  }
}

/** Records the first text of a file that is perhaps not read soon, so that its truncation is noticed. */
async function noteText(root: string, at: FileLook, state: FileState): Promise<void> {
  const head = state.head === "" && at.size > 0 ? await firstBytes(root, at) : undefined;
  if (head) Object.assign(state, { size: at.size, head });
}

const NOTHING_MISSED = { lives: [], unread: [] } as const;
