import type { Emission } from "../../../outbox/outbox.ts";
import { look, type FileLook } from "../folder.ts";
import type { FollowedFile } from "../followed.ts";
import type { LogWork } from "../work.ts";
import { gapOf } from "./gaps.ts";
import type { DirectoryScan } from "./directory-scan.ts";
import type { UnreadLife } from "./missed.ts";
import { allTold, type Position, type Switches } from "./switches.ts";

/** Detects if other lives of a log may have come and gone between two scans, by the changes of the log's name. */
export class RotationTracker {
  readonly #root: string;
  readonly #switches: Switches;
  /** Time when the last scan began. */
  #lookedMs = Infinity;
  /** Creation times of the files that the last scan found, by id. */
  #births: ReadonlyMap<string, number | undefined> = new Map();

  /** Times at which the agent last saw the followed files before its start, by id. Empty after the first scan. */
  #seenMs: ReadonlyMap<string, number> = new Map();

  constructor(root: string, switches: Switches) {
    this.#root = root;
    this.#switches = switches;
  }

  /** Begins with the files that are followed at the start of the agent. */
  begin(files: Iterable<FollowedFile>): void {
    this.#seenMs = new Map([...files].map(({ state: { id, seenMs } }) => [id, seenMs]));
  }

  beginLook(homes: ReadonlySet<string>): void {
    this.#switches.beginLook(homes);
  }

  /** Position of a home before the current scan, which found the file there. */
  beforeLook(home: string): Position | undefined {
    return this.#switches.beforeLook(home);
  }

  /** Changes of a name during a scan belong to the file that the scan found there, if that file is still there. */
  async endLook(files: Iterable<FollowedFile>, { atMs, looks }: DirectoryScan): Promise<void> {
    this.#lookedMs = atMs;
    this.#seenMs = new Map();
    this.#births = new Map(looks.map(({ id, birthMs }) => [id, birthMs]));
    const unsure = [...files].filter(
      ({ isHome, atHome, state: { home } }) =>
        isHome && this.#switches.now(home) && this.#switches.since(atHome, home) !== 0,
    );
    if (unsure.length > 0) await allTold();
    for (const file of unsure) {
      const { home, id, link } = file.state;
      const position = this.#switches.now(home);
      const at = await look(this.#root, home);
      if (at?.id === id && at.link === link) file.atHome = position;
    }
  }

  /**
   * True if the file is empty, has changed since its creation, and was not there at the last scan: lines may have been
   * truncated. For a file that was there, the gap of its former life says so.
   */
  wasEmptied({ id, size, mtimeMs, birthMs = 0 }: FileLook, sinceMs: number): boolean {
    // An inode that is used again has a later creation time.
    const wasThere = this.#births.get(id) === birthMs || birthMs <= (this.#seenMs.get(id) ?? -1);
    return size === 0 && birthMs >= sinceMs && mtimeMs > birthMs && !wasThere;
  }

  /**
   * A gap if other lives may have been at the home of a file before the file that is there now. There is none after a
   * single rotation. If it moves the log away and creates a new one, the name changes twice; if it replaces a link, the
   * name changes once.
   */
  async gapAfter(file: FollowedFile, looks: readonly FileLook[]): Promise<Emission[]> {
    const { home } = file.state;
    const isLink = looks.some(({ path, link }) => path === home && link !== undefined);
    await allTold();
    const changes = this.#switches.since(file.atHome, home);
    const isSingle = changes !== undefined && changes > 0 && changes <= (isLink ? 1 : 2);
    return isSingle ? [] : this.unknownGap(file);
  }

  /** A gap for a life that was packed before it was read, and whose packed file is not read. */
  unreadGap(work: LogWork, { home, bytes }: UnreadLife): Emission[] {
    return gapOf(work, { home, reason: "vanished", count: bytes, fromMs: this.#lookedMs });
  }

  /**
   * A gap of unknown size. It begins at the last scan at the latest, because the file may have been read since, under
   * another name.
   */
  unknownGap(file: FollowedFile): Emission[] {
    return file.losses.gap("vanished", 0, Math.min(file.state.seenMs, this.#lookedMs));
  }
}
