import { basename, dirname, join } from "node:path";
import { LOG_FILES_MAX, LOG_FORMER_HEADS_MAX, LOG_TIME_GRAIN_MS } from "../../../common/limits.ts";
import { policyMarks } from "../../host.ts";
import { beginsWith, look, walk, type FileLook } from "./folder.ts";
import { fileMarks, FollowedFile, type FileState } from "./followed.ts";
import { comparePlaces, logOf, placeOf } from "./order.ts";
import type { LogWork } from "./work.ts";

/** A head shorter than this may be equal by chance, such as the heading of a table. */
const COPY_HEAD_MIN_BYTES = 64;
const EMPTY_HEAD = { hash: "", bytes: 0 };

/** A matching file that nobody follows yet. */
interface Found {
  readonly at: FileLook;
  readonly home: string;
  readonly groups: Readonly<Record<string, string>>;
}

/**
 * The files a policy follows, each life of a file once, known by device, inode and its first bytes. A file that was renamed by a rotation
 * is followed under its new name to its end, whether that name matches or not.
 */
export class LogFiles {
  readonly #work: LogWork;
  readonly #files = new Map<number, FollowedFile>();
  #nextSerial = 1;
  #sinceMs = Infinity;
  #complained = false;

  constructor(work: LogWork) {
    this.#work = work;
  }

  async load(): Promise<void> {
    const { host, policy } = this.#work;
    const since = { key: `${policyMarks(policy.name)}since`, value: String(host.clock.nowMs()) };
    if (host.mark(since.key) === undefined) await host.emit([], { marks: [since], reserve: true });
    this.#sinceMs = Number(host.mark(since.key));
    this.#files.clear();
    for (const [, value] of this.#work.host.marks(fileMarks(this.#work.policy.name))) {
      const state: FileState = JSON.parse(value);
      this.#files.set(state.serial, new FollowedFile(this.#work, state));
      this.#nextSerial = Math.max(this.#nextSerial, state.serial + 1);
    }
  }

  /** Some are nowhere to be found, and may have been renamed while we looked. */
  get missing(): boolean {
    return [...this.#files.values()].some((file) => file.missing);
  }

  get waiting(): boolean {
    return [...this.#files.values()].some((file) => file.waiting);
  }

  /** False when no followed file has that path. */
  touch(path: string): boolean {
    let touched = false;
    for (const file of this.#files.values()) {
      if (file.state.path !== path) continue;
      file.dirty = true;
      touched = true;
    }
    return touched;
  }

  touchAll(): void {
    for (const file of this.#files.values()) if (file.isOpen || file.waiting) file.dirty = true;
  }

  /** Logs with something to read; the files of each in their order. */
  dirtyLogs(): FollowedFile[][] {
    const logs = new Map<string, FollowedFile[]>();
    for (const file of this.#files.values()) logs.set(file.state.log, [...(logs.get(file.state.log) ?? []), file]);
    const dirty = [...logs.values()].filter((files) => files.some((file) => file.dirty));
    for (const files of dirty) {
      files.sort((a, b) => comparePlaces(a.state.place, b.state.place) || a.state.serial - b.state.serial);
      files.forEach((file, index) => file.supersede(index < files.length - 1));
    }
    return dirty;
  }

  /** Finds what is new, renamed or gone; answers the folders to watch. */
  async scan(signal: AbortSignal): Promise<readonly string[]> {
    const { dir } = this.#work.spec;
    const { files, folders, cut } = await walk(dir);
    if (cut) this.#complain(`${dir} holds too many files; some are not followed`);
    const looks = await lookAll(dir, files.filter((path) => this.#work.match.test(path)));
    const rotatedHomes = await this.#locate(files, looks);
    await this.#closeGone(signal);
    const found = await this.#unknown(looks);
    // A name that is new may have been rotated already since the policy came.
    for (const { home } of found) if (!this.#isHome(home)) rotatedHomes.set(home, this.#sinceMs - LOG_TIME_GRAIN_MS);
    const between = await this.#missedGenerations(rotatedHomes, files, found);
    await this.#follow([...between, ...found], signal);
    return folders;
  }

  /** The same file from its beginning: it was cut off and is written anew. */
  async restart(file: FollowedFile, signal: AbortSignal): Promise<void> {
    const { state } = file;
    const serial = this.#nextSerial++;
    const former = [state.head, ...state.former].slice(0, LOG_FORMER_HEADS_MAX);
    const anew = new FollowedFile(this.#work, { ...state, serial, head: EMPTY_HEAD, former, offset: 0, skipping: false, size: 0 });
    await this.#work.host.emit(file.gap("truncated"), { marks: [file.unmark(), anew.mark()], reserve: true, signal });
    await file.close();
    this.#files.delete(state.serial);
    this.#files.set(serial, anew);
  }

  /** Those that were silent longest are closed; they are opened again when they change. */
  async closeIdle(openMax: number): Promise<void> {
    const open = [...this.#files.values()].filter((file) => file.isOpen && !file.gone);
    open.sort((a, b) => a.changedMs - b.changedMs);
    for (const file of open.slice(0, Math.max(0, open.length - openMax))) await file.close();
  }

  async closeAll(): Promise<void> {
    for (const file of this.#files.values()) await file.close();
  }

  /**
   * Where every followed file is now. Answers the names that were given from one file to the next, each with the time of the oldest life
   * known: whatever is younger belongs to the log.
   */
  async #locate(files: readonly string[], looks: readonly FileLook[]): Promise<Map<string, number>> {
    const { dir } = this.#work.spec;
    const byId = new Map(looks.map((at) => [at.id, at]));
    const missing: FollowedFile[] = [];
    for (const file of this.#files.values()) {
      const at = byId.get(file.state.id) ?? (await look(dir, file.state.path));
      if (at?.id === file.state.id) this.#isAt(file, at);
      else missing.push(file);
    }
    const folders = new Set(missing.map(({ state }) => dirname(state.path)));
    const others = missing.length === 0 ? [] : await lookAll(dir, files.filter((path) => folders.has(dirname(path))));
    const otherById = new Map(others.map((at) => [at.id, at]));
    for (const file of missing) {
      const at = otherById.get(file.state.id);
      if (at && (file.isOpen || (await beginsWith(join(dir, at.path), file.state.head)))) this.#isAt(file, at);
      else await file.miss();
    }
    const homes = new Map<string, number>();
    const lives = [...this.#files.values()];
    for (const { state } of lives.filter(({ state: { path, home }, missing: away }) => away || path !== home)) homes.set(state.home, Infinity);
    for (const { state } of lives) {
      const oldestMs = homes.get(state.home);
      if (oldestMs !== undefined) homes.set(state.home, Math.min(oldestMs, state.mtimeMs));
    }
    return homes;
  }

  #isHome(path: string): boolean {
    return [...this.#files.values()].some(({ state }) => state.home === path);
  }

  #isAt(file: FollowedFile, at: FileLook): void {
    file.state.path = at.path;
    file.found();
    if (at.size !== file.state.size || at.mtimeMs !== file.state.mtimeMs || at.size < file.state.offset) file.dirty = true;
    // Everything is in the outbox, also before a restart.
    else if (!file.isOpen && !file.waiting && at.size === file.state.offset) file.dirty = false;
  }

  /** What is open is read to its end first; the rest is lost, and counted. */
  async #closeGone(signal: AbortSignal): Promise<void> {
    for (const file of [...this.#files.values()]) {
      if (!file.gone) continue;
      if (file.isOpen) await file.read(signal);
      if (file.waiting) continue;
      await this.#work.host.emit(file.isOpen ? [] : file.gap("vanished"), { marks: [file.unmark()], reserve: true, signal });
      await file.close();
      this.#files.delete(file.state.serial);
    }
  }

  async #unknown(looks: readonly FileLook[]): Promise<Found[]> {
    const { dir } = this.#work.spec;
    const known = new Map([...this.#files.values()].map((file) => [file.state.id, file]));
    const found: Found[] = [];
    for (const at of looks) {
      const file = known.get(at.id);
      if (file || (await this.#isCopy(at))) continue;
      const groups = this.#work.match.exec(at.path)?.groups ?? {};
      found.push({ at, home: at.path, groups });
    }
    if (found.length > 0) this.#work.host.log("debug", "files found", { policy: this.#work.policy.name, dir, count: found.length });
    return found;
  }

  /** Some rotations copy the file and cut off the original: the copy was read already. */
  async #isCopy(at: FileLook): Promise<boolean> {
    for (const { state } of this.#files.values()) {
      if (state.path !== state.home || !isRotatedName(at.path, state.home)) continue;
      for (const head of [state.head, ...state.former]) {
        if (head.bytes < COPY_HEAD_MIN_BYTES || at.size < head.bytes) continue;
        if (await beginsWith(join(this.#work.spec.dir, at.path), head)) return true;
      }
    }
    return false;
  }

  /** Lives between the one last read and the present one that came and were renamed while nobody looked; their names may not match. */
  async #missedGenerations(homes: ReadonlyMap<string, number>, files: readonly string[], found: readonly Found[]): Promise<Found[]> {
    const missed: Found[] = [];
    const taken = new Set([...this.#files.values()].map(({ state }) => state.id).concat(found.map(({ at }) => at.id)));
    for (const [home, oldestMs] of homes) {
      const groups = this.#work.match.exec(home)?.groups ?? {};
      // Files written in the same tick of the file system's clock have equal times.
      const siblings = await lookAll(this.#work.spec.dir, files.filter((path) => isRotatedName(path, home)));
      for (const at of siblings) {
        if (taken.has(at.id) || at.mtimeMs < oldestMs || (await this.#isCopy(at))) continue;
        taken.add(at.id);
        missed.push({ at, home, groups });
      }
    }
    return missed;
  }

  async #follow(found: readonly Found[], signal: AbortSignal): Promise<void> {
    const { spec, host } = this.#work;
    const states = found.map(({ at, home, groups }) => ({ at, home, groups, place: placeOf(spec, groups), log: logOf(spec, home, groups) }));
    states.sort((a, b) => comparePlaces(a.place, b.place) || a.at.mtimeMs - b.at.mtimeMs || (a.at.path < b.at.path ? -1 : 1));
    const files: FollowedFile[] = [];
    for (const { at, home, groups, place, log } of states) {
      if (this.#files.size + files.length >= LOG_FILES_MAX) {
        this.#complain(`more than ${LOG_FILES_MAX} files match; the rest is not followed`);
        break;
      }
      const { id, path, mtimeMs } = at;
      const state = { serial: this.#nextSerial++, home, path, id, head: EMPTY_HEAD, former: [], offset: 0, skipping: false, size: 0, mtimeMs, log, place, groups };
      files.push(new FollowedFile(this.#work, state));
    }
    if (files.length === 0) return;
    await host.emit([], { marks: files.map((file) => file.mark()), reserve: true, signal });
    for (const file of files) this.#files.set(file.state.serial, file);
  }

  #complain(message: string): void {
    if (!this.#complained) this.#work.host.log("warn", message, { policy: this.#work.policy.name });
    this.#complained = true;
  }
}

async function lookAll(root: string, paths: readonly string[]): Promise<FileLook[]> {
  const looks: FileLook[] = [];
  for (const path of paths) {
    const at = await look(root, path);
    if (at) looks.push(at);
  }
  return looks;
}

/** `access.log.1`, `access.log-20260101`, `access-20260101.log` beside `access.log`. */
function isRotatedName(path: string, home: string): boolean {
  if (path === home || dirname(path) !== dirname(home)) return false;
  const name = basename(path);
  const [stem, end] = splitName(basename(home));
  return name.startsWith(`${stem}${end}.`) || name.startsWith(`${stem}${end}-`) || (end !== "" && name.startsWith(`${stem}-`) && name.endsWith(end));
}

function splitName(name: string): [stem: string, end: string] {
  const dot = name.lastIndexOf(".");
  return dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
}
