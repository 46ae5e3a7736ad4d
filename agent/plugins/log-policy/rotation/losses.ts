import type { Emission } from "../../../outbox/outbox.ts";
import type { Room } from "../records/holes.ts";
import type { LogWork } from "../work.ts";
import { gapOf } from "./gaps.ts";
import type { FileState } from "./life.ts";

/** Tells what is lost of one life of a file. */
export class Losses {
  readonly #work: LogWork;
  readonly #state: FileState;
  readonly #room: Room;
  /** Length before the truncation, by the write position of its writer; absent when unknown. */
  #lengthBeforeCut: number | undefined;

  constructor(work: LogWork, state: FileState, room: Room) {
    this.#work = work;
    this.#state = state;
    this.#room = room;
  }

  /** Finds out how long the truncated file was, so that unseen last lines count as lost. */
  async measure(): Promise<void> {
    const { writers, spec } = this.#work;
    this.#lengthBeforeCut = await writers.lengthBeforeCut(spec.dir, this.#state);
    this.check(this.#room.textEnd(this.#state.size));
  }

  /** A length before the truncation that is less than `bytes` is that of a later life, which was truncated too. */
  check(bytes: number): void {
    if ((this.#lengthBeforeCut ?? 0) < bytes) this.forget();
  }

  /** Forgets the length before the truncation. The position of the writer is that of a later truncation. */
  forget(): void {
    this.#lengthBeforeCut = undefined;
  }

  /** Number of text bytes that are known to have been after a position. */
  bytesBehind(place: number): number {
    return Math.max(0, Math.max(this.#room.textEnd(this.#state.size), this.#lengthBeforeCut ?? 0) - place);
  }

  /**
   * A gap for `count` bytes that are known to be lost. Zero means an unknown number, because more may have been written
   * and removed unseen. If the length before a truncation is known, zero means no loss, and there is no gap.
   */
  gap(
    reason: "truncated" | "vanished",
    count = this.bytesBehind(this.#state.offset),
    fromMs = this.#state.seenMs,
  ): Emission[] {
    if (count === 0 && reason === "truncated" && this.#lengthBeforeCut !== undefined) return [];
    return gapOf(this.#work, { home: this.#state.home, reason, count, fromMs });
  }

  /**
   * A gap of unknown size for a file that is still empty, but has changed: lines may have been written and truncated.
   * There is none if the position of the writer shows that it has written nothing.
   */
  async ofEmpty(): Promise<Emission[]> {
    const { writers, spec } = this.#work;
    return (await writers.isUnused(spec.dir, this.#state)) ? [] : this.gap("truncated", 0);
  }

  /**
   * A gap for a file from whose former content copies of these sizes were made, none of which was seen. There is none if
   * the position of the writer shows that nothing was written between the only copy and the truncation.
   */
  async ofCopies(sizes: readonly number[]): Promise<Emission[]> {
    if (sizes.every((size) => size === 0)) return [];
    const length = await this.#work.writers.lengthBeforeCut(this.#work.spec.dir, this.#state);
    return sizes.length === 1 && length === sizes[0] ? [] : this.gap("truncated", 0);
  }
}
