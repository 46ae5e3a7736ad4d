import { setImmediate } from "node:timers/promises";
import { AppError } from "../../common/errors.ts";
import { SLICE_LONG_MS, SLICE_MAX_MS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import { THREAD_TURNS } from "./turns.ts";

export interface SliceContext {
  /** The tenant to which the work is charged, or the address of a caller that is not signed in. */
  readonly tenant: string;
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
}

/**
 * Prevents one call's work from blocking the thread, and ends it when its caller has gone. In each turn of the event
 * loop a few paused works continue and a few calls start, with tenants in rotation. So a short call waits for a few
 * slices at most, independent of the number of calls. Waiting for the store does not block the thread. If several works
 * continue in one turn because their answers arrived, they share one slice. The work during which the slice ends
 * pauses.
 */
export class ThreadSlices {
  readonly #context: SliceContext;
  #beganMs: number;
  #turn = THREAD_TURNS.number;

  constructor(context: SliceContext) {
    this.#context = context;
    this.#beganMs = context.clock.monotonicMs();
  }

  /** The tenant to which the work is charged. */
  get tenant(): string {
    return this.#context.tenant;
  }

  /** True if the slice of this turn is used up. Then await `pause`. */
  isOverNow(): boolean {
    const nowMs = this.#context.clock.monotonicMs();
    if (this.#turn !== THREAD_TURNS.number) this.#begin(THREAD_TURNS.beganMs(nowMs));
    return nowMs - this.#beganMs >= SLICE_MAX_MS;
  }

  async pause(): Promise<void> {
    const isLong = this.#context.clock.monotonicMs() - this.#beganMs >= SLICE_LONG_MS;
    await setImmediate();
    // Work started by data of a connection continues in the same turn of the event loop: two long steps would form one.
    if (isLong) await setImmediate();
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
