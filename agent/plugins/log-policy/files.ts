import { policyMarks } from "../../policies/host.ts";
import { Complaints } from "./complaints.ts";
import { folderProblem, lookAll, walk } from "./folder.ts";
import { FollowedFile } from "./followed.ts";
import { Copies } from "./rotation/copies.ts";
import type { DirectoryScan } from "./rotation/directory-scan.ts";
import { Endings } from "./rotation/endings.ts";
import { fileMarks, type FileState } from "./rotation/life.ts";
import { Locator } from "./rotation/locator.ts";
import { MissedLives } from "./rotation/missed.ts";
import { originsOf } from "./rotation/names.ts";
import { NewLives } from "./rotation/new-lives.ts";
import { RotationTracker } from "./rotation/rotation-tracker.ts";
import type { Switches } from "./rotation/switches.ts";
import { dirtyLogs } from "./rotation/turns.ts";
import { Unpacking } from "./unpacking.ts";
import type { LogWork } from "./work.ts";

/**
 * Finds and follows the files of a policy, each life of a file once. A life is identified by its inode and by the
 * content that was read. It is followed to its end wherever a rotation moves it: under another name, even if that does
 * not match, or in the copy that is made before the file is truncated.
 */
export class LogFiles {
  readonly #work: LogWork;
  readonly #files = new Map<number, FollowedFile>();
  #missed: MissedLives | undefined;
  #endings: Endings | undefined;
  #locator: Locator | undefined;
  readonly #newLives: NewLives;
  readonly #complaints: Complaints;
  readonly #copies: Copies;
  readonly #unpacking: Unpacking;
  readonly #rotations: RotationTracker;
  constructor(work: LogWork, switches: Switches) {
    this.#work = work;
    this.#complaints = new Complaints(work);
    this.#rotations = new RotationTracker(work.spec.dir, switches);
    this.#copies = new Copies(work, this.#files);
    this.#unpacking = new Unpacking(work.packedLookBytes);
    const [files, rotations, copies, complaints] = [this.#files, this.#rotations, this.#copies, this.#complaints];
    this.#newLives = new NewLives({ work, files, rotations, copies, complaints });
  }

  async load(): Promise<void> {
    const { host, policy } = this.#work;
    const since = { key: `${policyMarks(policy.name)}since`, value: String(host.clock.nowMs()) };
    if (host.mark(since.key) === undefined) await host.emit([], { marks: [since], reserve: true });
    const sinceMs = Number(host.mark(since.key));
    const [work, unpacking, copies] = [this.#work, this.#unpacking, this.#copies];
    const followed = { work, files: this.#files, rotations: this.#rotations };
    const missed = (this.#missed = new MissedLives({ work, sinceMs, unpacking, copies }));
    const endings = (this.#endings = new Endings({ ...followed, missed, unpacking }));
    this.#locator = new Locator({ ...followed, copies, endings });
    this.#files.clear();
    for (const [, value] of host.marks(fileMarks(policy.name))) {
      const state: FileState = JSON.parse(value);
      this.#files.set(state.serial, new FollowedFile(this.#work, state));
    }
    this.#newLives.begin(sinceMs);
    this.#rotations.begin(this.#files.values());
  }

  /**
   * True if the last scan must be repeated: a packed file is not read to its end, or a life was not found, perhaps
   * because it was renamed meanwhile.
   */
  get missing(): boolean {
    return (
      this.#newLives.unsure || this.#unpacking.isUnderWay || [...this.#files.values()].some((file) => file.missing)
    );
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
    this.#newLives.beginLook();
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
    await this.#locator?.locate(scan, signal);
    const found = await this.#newLives.find(scan, followedHomes);
    this.#copies.endLook();
    if (found.length > 0)
      this.#work.host.log("debug", "files found", { policy: this.#work.policy.name, dir, count: found.length });
    await this.#endings?.closeGone(scan, signal);
    const { lives, unread } = (await this.#missed?.find(scan, this.#files.values(), signal)) ?? NOTHING_MISSED;
    const left = await this.#newLives.follow([...lives, ...found], scan, signal);
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
}

const NOTHING_MISSED = { lives: [], unread: [] } as const;
