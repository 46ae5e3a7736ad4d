import { AppError } from "../../../../common/errors.ts";
import { INGEST_BATCH_MAX_ENTRIES, SESSION_WINDOW_ENTRIES } from "../../../../common/limits.ts";
import type { Batch, ControllerFrame, Entry } from "../../../../proto/gen/agent/v1/agent.ts";
import type { EntrySink, EntrySource } from "../types.ts";
import type { EntryPlace, EntryRoom } from "./entry-room.ts";

export interface EntryIntakeDependencies {
  readonly sink: EntrySink;
  readonly room: EntryRoom;
  readonly source: EntrySource;
  /** Sequence of the last entry that is safe already. */
  readonly acknowledged: number;
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
  #queue: Entry[] = [];
  #waitingForRoom = false;
  #accepting: Promise<void> | undefined;
  #lastSequence: number;
  #unacknowledged = 0;

  constructor(dependencies: EntryIntakeDependencies) {
    this.#with = dependencies;
    this.#place = dependencies.room.open();
    this.#lastSequence = dependencies.acknowledged;
  }

  get isWaitingForRoom(): boolean {
    return this.#waitingForRoom;
  }

  /** Nothing more is read of the stream until there is room for these. */
  async take(batch: Batch): Promise<void> {
    if (batch.streamId !== this.#with.source.streamId)
      throw new AppError("invalid", "A batch is of another stream than the session's.");
    const fresh: Entry[] = [];
    for (const entry of batch.entries) {
      if (entry.sequence <= this.#lastSequence) continue; // sent twice
      this.#lastSequence = entry.sequence;
      fresh.push(entry);
    }
    this.#unacknowledged += fresh.length;
    // The agent may have sent before it read an acknowledgement, never more than a window beyond.
    if (this.#unacknowledged > 2 * SESSION_WINDOW_ENTRIES) {
      throw new AppError("limited", `More than ${SESSION_WINDOW_ENTRIES} entries are on the way unacknowledged.`);
    }
    if (fresh.length === 0) return;
    this.#waitingForRoom = true;
    await this.#place.take(fresh);
    this.#waitingForRoom = false;
    this.#queue.push(...fresh);
    this.#accepting ??= this.#accept();
  }

  /** The session is over. */
  leave(): void {
    this.#place.leave();
  }

  /** What came while the sink worked is handed over at once and acknowledged together. */
  async #accept(): Promise<void> {
    const { sink, source, send, isOver, failed } = this.#with;
    try {
      while (this.#queue.length > 0 && !isOver()) {
        const entries = this.#queue.slice(0, INGEST_BATCH_MAX_ENTRIES);
        this.#queue = this.#queue.slice(entries.length);
        const throughSequence = await sink.accept(source, entries);
        this.#unacknowledged -= entries.length;
        this.#place.give(entries);
        send({ $case: "acknowledge", value: { streamId: source.streamId, throughSequence } });
      }
    } catch (error) {
      failed(error);
    } finally {
      // In the same turn as the last look at the queue: what comes later is taken anew.
      this.#accepting = undefined;
    }
  }
}
