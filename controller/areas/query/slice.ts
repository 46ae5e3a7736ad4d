import { setImmediate } from "node:timers/promises";
import { AppError } from "../../../common/errors.ts";
import { QUERY_SLICE_MAX_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";

/** Rows between two looks at the clock. */
const ROWS_PER_LOOK = 64;

/** Keeps a query from holding the thread, and ends it when nobody waits for it any more. */
export class Slices {
  readonly #clock: Clock;
  readonly #signal: AbortSignal | undefined;
  #beganMs: number;
  #rows = 0;

  constructor(clock: Clock, signal: AbortSignal | undefined) {
    this.#clock = clock;
    this.#signal = signal;
    this.#beganMs = clock.monotonicMs();
  }

  /** To be asked once for every row; when true, `pause` has to be awaited. */
  isOver(): boolean {
    this.#rows += 1;
    return this.#rows % ROWS_PER_LOOK === 0 && this.#clock.monotonicMs() - this.#beganMs >= QUERY_SLICE_MAX_MS;
  }

  async pause(): Promise<void> {
    await setImmediate();
    this.check();
    this.#beganMs = this.#clock.monotonicMs();
  }

  check(): void {
    if (!this.#signal?.aborted) return;
    const reason: unknown = this.#signal.reason;
    throw reason instanceof AppError ? reason : new AppError("cancelled", "[Exec] query Timed out!", { cause: reason });
  }
}
