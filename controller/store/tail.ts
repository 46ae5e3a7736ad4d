import { FOLLOW_PIECE_BYTES, FOLLOW_POLL_MS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import type { StreamPart } from "./blobs.ts";

/** Stored data that grows at its end. */
export interface Growing {
  read(offset: number, maxBytes: number): Promise<StreamPart>;
  /** True when nothing more will be appended. A reader then finds everything that was appended. */
  isOver(): Promise<boolean>;
  /**
   * Calls back after an append of this controller, or at the end; the returned function unsubscribes. Appends of other
   * controllers are found by polling.
   */
  onAppend(callback: () => void): () => void;
}

/** The bytes from `from` (inclusive) to `to` (exclusive). */
export interface TailPiece {
  readonly from: number;
  readonly to: number;
  readonly bytes: Uint8Array;
}

export interface TailOptions {
  readonly from: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called before each read; throws if the reader may not continue. */
  readonly mayRead: () => Promise<void>;
}

/**
 * Yields the stored data from a position on, then appended data until the end. Everything is read from the store, so
 * nothing is missing or doubled where stored and appended data meet. Nothing is queued for a slow reader: the next
 * piece is read after it has taken the last one.
 */
export async function* tail(source: Growing, { from, clock, signal, mayRead }: TailOptions): AsyncGenerator<TailPiece> {
  const appended = new AppendSignal(clock);
  const leave = source.onAppend(() => appended.set());
  try {
    for (let position = from; !signal.aborted; ) {
      await mayRead();
      // Both come before the read: later appends set the signal, and a stream that is over by now is read completely.
      appended.reset();
      const isOver = await source.isOver();
      const { bytes, size } = await source.read(position, FOLLOW_PIECE_BYTES);
      if (bytes.length > 0) {
        yield { from: position, to: position + bytes.length, bytes };
        position += bytes.length;
      } else if (isOver && position >= size) return;
      else await appended.settled(signal);
    }
  } finally {
    leave();
  }
}

/** A signal that stays set until it is reset. */
export class AppendSignal {
  readonly #clock: Clock;
  #isRung = false;
  #wake: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  set(): void {
    this.#isRung = true;
    this.#wake();
  }

  reset(): void {
    this.#isRung = false;
  }

  /** Resolves when the signal is set or aborted, at the latest after `FOLLOW_POLL_MS`. */
  settled(signal: AbortSignal): Promise<void> {
    if (this.#isRung || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        signal.removeEventListener("abort", done);
        resolve();
      };
      const cancel = this.#clock.after(FOLLOW_POLL_MS, done);
      signal.addEventListener("abort", done, { once: true });
      this.#wake = done;
    });
  }
}

/** Notifies readers in this process of appends, by the name of the growing data. */
export class AppendNotifier {
  readonly #listeners = new Map<string, Set<() => void>>();

  tell(name: string): void {
    for (const listener of this.#listeners.get(name) ?? []) listener();
  }

  on(name: string, listener: () => void): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(name) === listeners) this.#listeners.delete(name);
    };
  }
}
