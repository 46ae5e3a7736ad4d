import { setImmediate } from "node:timers/promises";
import { AppError } from "../../../common/errors.ts";
import { QUERY_SLICE_MAX_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { THREAD_TURNS } from "../../turns.ts";

/** Rows between two looks at the clock. */
const ROWS_PER_LOOK = 64;

export interface SliceContext {
  readonly tenant: string;
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
}

/**
 * Keeps a query from holding the thread, and ends it when nobody waits for it any more. Queries that paused go on, and calls begin, a few in each
 * turn of the event loop and each tenant's in rotation: who comes with a short call waits for a slice or two, however many queries there are.
 *
 * To wait for the store is not to hold the thread. The queries whose answers came in one turn share one slice; who finds it over pauses.
 */
export class Slices {
  readonly #context: SliceContext;
  #beganMs: number;
  #turn = THREAD_TURNS.number;
  #rows = 0;

  constructor(context: SliceContext) {
    this.#context = context;
    this.#beganMs = context.clock.monotonicMs();
  }

  /** To be asked once for every row; when true, `pause` has to be awaited. */
  isOver(): boolean {
    this.#rows += 1;
    return this.#rows % ROWS_PER_LOOK === 0 && this.isOverNow();
  }

  /** The same where more was done at once than a row takes. */
  isOverNow(): boolean {
    const nowMs = this.#context.clock.monotonicMs();
    if (this.#turn !== THREAD_TURNS.number) this.#begin(THREAD_TURNS.beganMs(nowMs));
    return nowMs - this.#beganMs >= QUERY_SLICE_MAX_MS;
  }

  async pause(): Promise<void> {
    await setImmediate();
    await THREAD_TURNS.next(this.#context.tenant);
    this.check();
    this.#begin(this.#context.clock.monotonicMs());
  }

  check(): void {
    const { signal } = this.#context;
    if (!signal?.aborted) return;
    const reason: unknown = signal.reason;
    throw reason instanceof AppError ? reason : new AppError("cancelled", "[Exec] query Timed out!", { cause: reason });
  }

  #begin(atMs: number): void {
    this.#beganMs = atMs;
    this.#turn = THREAD_TURNS.number;
  }
}
