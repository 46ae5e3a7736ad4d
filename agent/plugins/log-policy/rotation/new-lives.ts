import { LOG_TIME_GRAIN_MS } from "../../../../common/limits.ts";
import type { Complaints } from "../complaints.ts";
import type { FileLook } from "../folder.ts";
import { FollowedFile } from "../followed.ts";
import type { LogWork } from "../work.ts";
import { firstBytes, NO_TAIL } from "./content.ts";
import type { Copies } from "./copies.ts";
import type { DirectoryScan } from "./directory-scan.ts";
import { inOrder, livesByHome, unreadAfter, unseenLosses, type Found } from "./found.ts";
import type { FileState } from "./life.ts";
import type { UnreadLife } from "./missed.ts";
import { isNumbered, originsOf } from "./names.ts";
import type { RotationTracker } from "./rotation-tracker.ts";

interface Parts {
  readonly work: LogWork;
  readonly files: Map<number, FollowedFile>;
  readonly rotations: RotationTracker;
  readonly copies: Copies;
  readonly complaints: Complaints;
}

/** Finds lives that are not followed yet, and begins to follow them. */
export class NewLives {
  readonly #work: LogWork;
  readonly #files: Map<number, FollowedFile>;
  readonly #rotations: RotationTracker;
  readonly #copies: Copies;
  readonly #complaints: Complaints;
  /** Time when the policy began. */
  #sinceMs = Infinity;
  #nextSerial = 1;
  /** Homes that were followed when the last scan began. */
  #formerHomes: readonly string[] = [];
  #unsure = false;

  constructor({ work, files, rotations, copies, complaints }: Parts) {
    this.#work = work;
    this.#files = files;
    this.#rotations = rotations;
    this.#copies = copies;
    this.#complaints = complaints;
  }

  /** Begins with the files that are followed at the start of the policy. `sinceMs`: time when the policy began. */
  begin(sinceMs: number): void {
    this.#sinceMs = sinceMs;
    this.#formerHomes = [];
    this.#nextSerial = Math.max(this.#nextSerial, ...[...this.#files.keys()].map((serial) => serial + 1));
  }

  /** True if a file changed during the last scan, so another scan is needed. */
  get unsure(): boolean {
    return this.#unsure;
  }

  beginLook(): void {
    this.#unsure = false;
  }

  /**
   * Files that are not followed yet: those that match, and rotated lives that no earlier scan has seen. `followedHomes`:
   * homes that were followed when this scan began.
   */
  async find(scan: DirectoryScan, followedHomes: readonly string[]): Promise<Found[]> {
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
    this.#formerHomes = followedHomes;
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
  async follow(found: readonly Found[], scan: DirectoryScan, signal: AbortSignal): Promise<readonly UnreadLife[]> {
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
