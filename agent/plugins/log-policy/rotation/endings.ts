import { isAppError } from "../../../../common/errors.ts";
import { LOG_PACKED_LOOK_MS, LOG_PACKED_WAIT_MS } from "../../../../common/limits.ts";
import type { Emission } from "../../../outbox/outbox.ts";
import type { Mark } from "../../../outbox/segment.ts";
import type { FollowedFile } from "../followed.ts";
import type { RotationTracker } from "./rotation-tracker.ts";
import type { MissedLives, UnreadLife } from "./missed.ts";
import { isYoungest } from "./names.ts";
import { isPackedLife, packedRest, type Packed, type PackedRest, type Search } from "../packed.ts";
import type { Unpacking } from "../unpacking.ts";
import type { DirectoryScan } from "./directory-scan.ts";
import type { LogWork } from "../work.ts";

interface Parts {
  readonly work: LogWork;
  readonly files: Map<number, FollowedFile>;
  readonly rotations: RotationTracker;
  readonly missed: MissedLives;
  readonly unpacking: Unpacking;
}

/** Ends lives whose file is gone. Their rest is read from a packed file; a gap reports a rest that is lost. */
export class Endings {
  readonly #work: LogWork;
  readonly #files: Map<number, FollowedFile>;
  readonly #rotations: RotationTracker;
  readonly #missed: MissedLives;
  readonly #unpacking: Unpacking;
  /** Packed files from which lives are being read. */
  readonly #rests = new WeakMap<FollowedFile, PackedRest>();

  constructor({ work, files, rotations, missed, unpacking }: Parts) {
    this.#unpacking = unpacking;
    this.#work = work;
    this.#files = files;
    this.#rotations = rotations;
    this.#missed = missed;
  }

  /** Ends the lives that are gone. An open file is read to its end first. A gap counts what is lost. */
  async closeGone(scan: DirectoryScan, signal: AbortSignal): Promise<void> {
    const losses: Emission[] = [];
    const marks: Mark[] = [];
    for (const file of [...this.#files.values()]) {
      // The packed file is read before the life counts as gone, because the next rotations may remove it.
      const mayBePacked = file.displaced || isPackedLife(file.state);
      if (!file.gone && (!mayBePacked || this.#waits(file))) continue;
      // A long hole takes several reads.
      if (file.isOpen && !file.displaced)
        do await file.read(signal);
        while (file.dirty && !signal.aborted);
      if ((file.waiting && !file.displaced) || (await this.#isBeingPacked(file, scan, signal))) continue;
      if (!file.gone && !file.isPacked) continue;
      if (!file.isPacked && this.#missed.isUndecided(file.state.home)) file.losses.forget();
      const loss = lossOf(file);
      if (loss.length === 0 && file.isHome && !file.displaced)
        loss.push(...(await this.#rotations.gapAfter(file, scan.looks)));
      this.#missed.ended(file.state, loss.length > 0);
      losses.push(...loss);
      marks.push(file.unmark());
      await file.close();
      this.#files.delete(file.state.serial);
    }
    // One write for all of them, because the mark that remembers ended lives is large.
    if (marks.length > 0)
      await this.#work.host.emit(losses, { marks: [...marks, ...this.#missed.decided()], reserve: true, signal });
  }

  /** True if a packed file has all that was read of a life, or may have it. */
  async isPacked(file: FollowedFile, scan: DirectoryScan, signal: AbortSignal): Promise<boolean> {
    return (await this.#restOf(file, scan, signal)) !== undefined;
  }

  /** True if an older life of the same home must be read first. */
  #waits({ state }: FollowedFile): boolean {
    return [...this.#files.values()].some(
      (older) => older.isAwaited && older.state.home === state.home && older.state.serial < state.serial,
    );
  }

  /** Stores which packed files are decided, so that they are not read again. A gap reports each unread life. */
  async decide(unread: readonly UnreadLife[], signal: AbortSignal): Promise<void> {
    const gaps = unread.flatMap((life) => this.#rotations.unreadGap(this.#work, life));
    const marks = this.#missed.decided();
    if (marks.length + gaps.length > 0) await this.#work.host.emit(gaps, { marks, reserve: true, signal });
  }

  /**
   * Reads the rest of a life from the file into which it was packed. True if the life must not end yet: the packed file
   * is incomplete, for at most `LOG_PACKED_WAIT_MS`, or it was moved, or the agent is stopping.
   */
  async #isBeingPacked(file: FollowedFile, scan: DirectoryScan, signal: AbortSignal): Promise<boolean> {
    if (file.isOpen && !file.displaced) return false;
    const nowMs = this.#work.host.clock.monotonicMs();
    if (nowMs < file.packedTriedMs + LOG_PACKED_LOOK_MS) return true;
    const found = this.#rests.get(file) ?? (await this.#restOf(file, scan, signal));
    // The agent is stopping. It continues with this life after its next start.
    if (signal.aborted) return true;
    if (found === "more") file.holdOthers();
    if (found === undefined || found === "more") return found === "more";
    if (found === "growing") {
      file.packedTriedMs = nowMs;
      file.packedSinceMs ??= nowMs;
      return nowMs < file.packedSinceMs + LOG_PACKED_WAIT_MS;
    }
    if (!isYoungest(found.path, file.state.home, [...scan.files, ...scan.packed])) file.losses.forget();
    try {
      const isDone = await file.takeRest(found, this.#unpacking, signal);
      if (isDone) this.#rests.delete(file);
      else this.#rests.set(file, found);
      if (!isDone) file.holdOthers();
      return !isDone;
    } catch (error) {
      this.#rests.delete(file);
      // The packed file was renamed or removed between the two reads. The next scan finds it.
      if (signal.aborted || isAppError(error)) throw error;
      return true;
    }
  }

  #restOf({ state }: FollowedFile, scan: DirectoryScan, signal: AbortSignal): Promise<Packed<PackedRest>> {
    const followed = [...this.#files.values()].map((other) => other.state);
    const read = followed.filter((other) => other.home === state.home && other.offset > 0);
    return packedRest(this.#search(scan, signal), state, [...this.#missed.endedOf(state.home), ...read]);
  }

  #search({ packed }: DirectoryScan, signal: AbortSignal): Search {
    const { spec, packedMaxBytes } = this.#work;
    return { root: spec.dir, packed, signal, maxBytes: packedMaxBytes, unpacking: this.#unpacking };
  }
}

/**
 * The gap for the lost rest of a life. Nothing is lost of a life that was empty, or that was read to its end: while its
 * file was open, from a packed file, or after it was moved away.
 */
function lossOf(file: FollowedFile): Emission[] {
  if (file.state.head === "" && !file.isUnread) return [];
  if (file.displaced && file.isHome) return file.losses.gap("truncated");
  if (file.isOpen || file.isPacked) return [];
  return file.isHome || file.isUnread ? file.losses.gap("vanished") : [];
}
