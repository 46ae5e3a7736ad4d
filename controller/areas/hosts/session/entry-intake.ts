import { AppError } from "../../../../common/errors.ts";
import { INGEST_BATCH_MAX_ENTRIES, SESSION_WINDOW_ENTRIES } from "../../../../common/limits.ts";
import type { Batch, ControllerFrame } from "../../../../proto/gen/agent/v1/agent.ts";
import type { ThreadSlices } from "../../../turns/slices.ts";
import type { EntrySink, EntrySource } from "../types.ts";
import type { EntryPlace, EntryRoom } from "./entry-room.ts";

export interface EntryIntakeDependencies {
  readonly sink: EntrySink;
  readonly room: EntryRoom;
  readonly source: EntrySource;
  /**
   * Shared by all sessions of a tenant. They take turns, so that entries of many hosts at once do not block other
   * calls.
   */
  readonly slices: Pick<ThreadSlices, "isOverNow" | "pause">;
  readonly send: (frame: ControllerFrame["frame"]) => void;
  /** Returns true if the session is over. */
  readonly isOver: () => boolean;
  /** Called when the sink refuses entries: the session has to end. */
  readonly failed: (error: unknown) => void;
}

/** Passes the entries of one session from their frames to the sink, and acknowledges them. */
export class EntryIntake {
  readonly #with: EntryIntakeDependencies;
  readonly #place: EntryPlace;
  #queue: Batch[] = [];
  #waitingForRoom = false;
  #accepting: Promise<void> | undefined;
  #lastSequence = 0;
  #unacknowledged = 0;

  constructor(dependencies: EntryIntakeDependencies) {
    this.#with = dependencies;
    this.#place = dependencies.room.open();
  }

  get isWaitingForRoom(): boolean {
    return this.#waitingForRoom;
  }

  /** Queues the batch. Resolves when there is room for its entries; the stream is not read until then. */
  async take(batch: Batch): Promise<void> {
    if (batch.streamId !== this.#with.source.streamId)
      throw new AppError("invalid", "A batch is of another stream than the session's.");
    const last = checkedOrder(batch);
    // The batch was sent twice. (A batch of which a part was sent before creates the same rows again.)
    if (last <= this.#lastSequence) return;
    this.#lastSequence = last;
    this.#unacknowledged += batch.entries.length;
    // The agent may have sent a window of entries before it read an acknowledgement. So two windows may be
    // unacknowledged.
    if (this.#unacknowledged > 2 * SESSION_WINDOW_ENTRIES) {
      throw new AppError("limited", `More than ${SESSION_WINDOW_ENTRIES} entries are on the way unacknowledged.`);
    }
    this.#waitingForRoom = true;
    await this.#place.take(batch.entries);
    this.#waitingForRoom = false;
    this.#queue.push(batch);
    this.#accepting ??= this.#accept();
  }

  /** Call when the session is over. */
  leave(): void {
    this.#place.leave();
  }

  /**
   * Passes queued batches to the sink. Batches that arrive in the meantime are passed on together and acknowledged
   * once.
   */
  async #accept(): Promise<void> {
    const { sink, source, slices, send, isOver, failed } = this.#with;
    try {
      while (this.#queue.length > 0 && !isOver()) {
        if (slices.isOverNow()) await slices.pause();
        if (isOver()) return;
        const batches = this.#next();
        const entries = batches.flatMap((batch) => batch.entries);
        await sink.accept(source, batches);
        this.#unacknowledged -= entries.length;
        this.#place.give(entries);
        const throughSequence = entries.at(-1)?.sequence ?? 0;
        send({ $case: "acknowledge", value: { streamId: source.streamId, throughSequence } });
      }
    } catch (error) {
      failed(error);
    } finally {
      // Done in the same turn as the last check of the queue, so later batches start a new run.
      this.#accepting = undefined;
    }
  }

  /** Returns at least one batch, and at most as many as are stored at once. */
  #next(): readonly Batch[] {
    let entries = 0;
    const fits = this.#queue.findIndex(
      (batch, at) => (entries += batch.entries.length) > INGEST_BATCH_MAX_ENTRIES && at > 0,
    );
    return this.#queue.splice(0, fits < 0 ? this.#queue.length : fits);
  }
}

/** The last sequence number; 0 for an empty batch. */
function checkedOrder({ entries }: Batch): number {
  let last = 0;
  for (const { sequence } of entries) {
    if (sequence <= last) throw new AppError("invalid", `Entry ${sequence} comes after ${last}.`);
    last = sequence;
  }
  return last;
}
