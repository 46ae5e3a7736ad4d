import { AppError } from "../../../../common/errors.ts";
import { INGEST_BATCH_MAX_ENTRIES, SESSION_WINDOW_ENTRIES } from "../../../../common/limits.ts";
import type { Batch, ControllerFrame } from "../../../../proto/gen/agent/v1/agent.ts";
import type { ThreadSlices } from "../../../slices.ts";
import type { EntrySink, EntrySource } from "../types.ts";
import type { EntryPlace, EntryRoom } from "./entry-room.ts";

export interface EntryIntakeDependencies {
  readonly sink: EntrySink;
  readonly room: EntryRoom;
  readonly source: EntrySource;
  /** Entries of all sessions of a tenant go on in turns: those of many hosts that come at once hold up no other call. */
  readonly slices: Pick<ThreadSlices, "isOverNow" | "pause">;
  readonly send: (frame: ControllerFrame["frame"]) => void;
  /** Whether the session is over. */
  readonly isOver: () => boolean;
  /** The sink refused entries: the session has to end. */
  readonly failed: (error: unknown) => void;
}

/** The entries of one session, from their frames to the sink and its acknowledgement. */
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

  /** Nothing more is read of the stream until there is room for these. */
  async take(batch: Batch): Promise<void> {
    if (batch.streamId !== this.#with.source.streamId)
      throw new AppError("invalid", "A batch is of another stream than the session's.");
    const last = checkedOrder(batch);
    // Sent twice. What was sent in part makes the same rows again.
    if (last <= this.#lastSequence) return;
    this.#lastSequence = last;
    this.#unacknowledged += batch.entries.length;
    // The agent may have sent before it read an acknowledgement, never more than a window beyond.
    if (this.#unacknowledged > 2 * SESSION_WINDOW_ENTRIES) {
      throw new AppError("limited", `More than ${SESSION_WINDOW_ENTRIES} entries are on the way unacknowledged.`);
    }
    this.#waitingForRoom = true;
    await this.#place.take(batch.entries);
    this.#waitingForRoom = false;
    this.#queue.push(batch);
    this.#accepting ??= this.#accept();
  }

  /** The session is over. */
  leave(): void {
    this.#place.leave();
  }

  /** What came while the sink worked is handed over at once and acknowledged together. */
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
      // In the same turn as the last look at the queue: what comes later is taken anew.
      this.#accepting = undefined;
    }
  }

  /** At least one batch, and as many as are stored at once. */
  #next(): readonly Batch[] {
    let entries = 0;
    const fits = this.#queue.findIndex(
      (batch, at) => (entries += batch.entries.length) > INGEST_BATCH_MAX_ENTRIES && at > 0,
    );
    return this.#queue.splice(0, fits < 0 ? this.#queue.length : fits);
  }
}

/** The last sequence; 0 of an empty batch. */
function checkedOrder({ entries }: Batch): number {
  let last = 0;
  for (const { sequence } of entries) {
    if (sequence <= last) throw new AppError("invalid", `Entry ${sequence} comes after ${last}.`);
    last = sequence;
  }
  return last;
}
