import { FOLLOW_PIECE_BYTES, FOLLOW_POLL_MS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import type { StreamPart } from "./blobs.ts";

/** Something stored that grows at its end. */
export interface Growing {
  read(offset: number, maxBytes: number): Promise<StreamPart>;
  /** True when nothing is appended any more; a reader finds all that was appended before. */
  isOver(): Promise<boolean>;
  /** Calls back after an append of this controller, or at the end; the answer ends it. Others' are found by looking. */
  onAppend(callback: () => void): () => void;
}

/** `bytes` are those from `from` up to before `to`. */
export interface TailPiece {
  readonly from: number;
  readonly to: number;
  readonly bytes: Uint8Array;
}

export interface TailOptions {
  readonly from: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Asked before each look at what is stored; throws when the reader may not read on. */
  readonly mayRead: () => Promise<void>;
}

/**
 * What is stored from a position on, and what is appended, until it is over. Everything is read from the store, so
 * there is no hole and nothing twice where the past ends, and nothing waits for a slow reader: the next piece is read
 * when it took the last.
 */
export async function* tail(source: Growing, { from, clock, signal, mayRead }: TailOptions): AsyncGenerator<TailPiece> {
  const bell = new Bell(clock);
  const leave = source.onAppend(() => bell.ring());
  try {
    for (let position = from; !signal.aborted; ) {
      await mayRead();
      // Both before the read: what comes after it rings, and a stream that was over then is whole now.
      bell.silence();
      const isOver = await source.isOver();
      const { bytes, size } = await source.read(position, FOLLOW_PIECE_BYTES);
      if (bytes.length > 0) {
        yield { from: position, to: position + bytes.length, bytes };
        position += bytes.length;
      } else if (isOver && position >= size) return;
      else await bell.rung(signal);
    }
  } finally {
    leave();
  }
}

/** Remembers that it was rung until it is silenced. */
export class Bell {
  readonly #clock: Clock;
  #isRung = false;
  #wake: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ring(): void {
    this.#isRung = true;
    this.#wake();
  }

  silence(): void {
    this.#isRung = false;
  }

  /** At the latest after `FOLLOW_POLL_MS`. */
  rung(signal: AbortSignal): Promise<void> {
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

/** Notifies readers in this process of appends, by the name of what grows. */
export class Appends {
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
