import { isAppError } from "../../../../common/errors.ts";
import { LOG_PACKED_LOOK_MS, LOG_PACKED_WAIT_MS } from "../../../../common/limits.ts";
import type { Emission } from "../../../outbox/outbox.ts";
import type { Mark } from "../../../outbox/segment.ts";
import type { FollowedFile } from "../followed.ts";
import type { RotationTracker } from "./rotation-tracker.ts";
import type { MissedLives, UnreadLife } from "./missed.ts";
import { isYoungest } from "./names.ts";
import { isPackedLife, packedRest } from "../packed.ts";
import type { DirectoryScan } from "./directory-scan.ts";
import type { LogWork } from "../work.ts";

interface Parts {
  readonly work: LogWork;
  readonly files: Map<number, FollowedFile>;
  readonly rotations: RotationTracker;
  readonly missed: MissedLives;
}

/** Ends lives that are nowhere any more: with their rest where it was packed, with a gap where it is lost. */
export class Endings {
  readonly #work: LogWork;
  readonly #files: Map<number, FollowedFile>;
  readonly #rotations: RotationTracker;
  readonly #missed: MissedLives;

  constructor({ work, files, rotations, missed }: Parts) {
    this.#work = work;
    this.#files = files;
    this.#rotations = rotations;
    this.#missed = missed;
  }

  /** An open file is read to its end first; the rest is lost, and counted. */
  async closeGone(scan: DirectoryScan, signal: AbortSignal): Promise<void> {
    const losses: Emission[] = [];
    const marks: Mark[] = [];
    for (const file of [...this.#files.values()]) {
      // The next rotations may remove a packed file: it is not searched for only when the life is gone.
      const mayBePacked = file.displaced || isPackedLife(file.state);
      if (!file.gone && (!mayBePacked || this.#waits(file))) continue;
      // A long hole takes several.
      if (file.isOpen && !file.displaced)
        do await file.read(signal);
        while (file.dirty && !signal.aborted);
      if ((file.waiting && !file.displaced) || (await this.#isBeingPacked(file, scan, signal))) continue;
      if (!file.gone && !file.isPacked) continue;
      const loss = lossOf(file);
      if (loss.length === 0 && file.isHome && !file.displaced)
        loss.push(...(await this.#rotations.gapAfter(file, scan.looks)));
      this.#missed.ended(file.state, loss.length > 0);
      losses.push(...loss);
      marks.push(file.unmark());
      await file.close();
      this.#files.delete(file.state.serial);
    }
    // Once for all: what is remembered of ended lives is long.
    if (marks.length > 0)
      await this.#work.host.emit(losses, { marks: [...marks, ...this.#missed.decided()], reserve: true, signal });
  }

  /** An older life of its log comes first. */
  #waits({ state }: FollowedFile): boolean {
    return [...this.#files.values()].some(
      (older) => older.isAwaited && older.state.home === state.home && older.state.serial < state.serial,
    );
  }

  /** Packed files that were looked into are not looked into again. */
  async decide(unread: readonly UnreadLife[], signal: AbortSignal): Promise<void> {
    const gaps = unread.flatMap((life) => this.#rotations.unreadGap(this.#work, life));
    const marks = this.#missed.decided();
    if (marks.length + gaps.length > 0) await this.#work.host.emit(gaps, { marks, reserve: true, signal });
  }

  /** Reads the rest of a life out of the file it was packed into. True while that is still written. */
  async #isBeingPacked(file: FollowedFile, scan: DirectoryScan, signal: AbortSignal): Promise<boolean> {
    if (file.isOpen && !file.displaced) return false;
    const nowMs = this.#work.host.clock.monotonicMs();
    if (nowMs < file.packedTriedMs + LOG_PACKED_LOOK_MS) return true;
    const found = await packedRest(
      { root: this.#work.spec.dir, packed: scan.packed, signal, maxBytes: this.#work.packedMaxBytes },
      file.state,
    );
    // An agent that ends leaves the life to the next one.
    if (signal.aborted) return true;
    if (found === undefined) return false;
    if (found === "growing") {
      file.packedTriedMs = nowMs;
      file.packedSinceMs ??= nowMs;
      return nowMs < file.packedSinceMs + LOG_PACKED_WAIT_MS;
    }
    if (!isYoungest(found.path, file.state.home, [...scan.files, ...scan.packed])) file.forgetLength();
    try {
      await file.takeRest(found, signal);
    } catch (error) {
      // Renamed or removed between the two passes: the next look finds it where it is now.
      if (signal.aborted || isAppError(error)) throw error;
      return true;
    }
    return false;
  }
}

/**
 * Nothing is lost of a life that was empty, was read to its end while it was deleted, or was put away and read to its
 * end before.
 */
function lossOf(file: FollowedFile): Emission[] {
  if (file.state.head === "" && !file.isUnread) return [];
  if (file.displaced && file.isHome) return file.gap("truncated");
  if (file.isOpen || file.isPacked) return [];
  return file.isHome || file.isUnread ? file.gap("vanished") : [];
}
