import { setImmediate } from "node:timers/promises";
import { AppError } from "../../../../common/errors.ts";
import { QUERY_SLICE_MAX_MS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import type { MemoryShare } from "../expressions/memory.ts";
import { THREAD_TEXT_WORK } from "../expressions/textwork.ts";
import { THREAD_TURNS } from "../../../turns.ts";

/** Rows between two looks at the clock. */
const ROWS_PER_LOOK = 64;
/** Functions read and make so many characters in the time in which an ordinary row is read. */
const CHARACTERS_PER_ROW = 4_096;
/** A statement or a row of one takes as long as some rows that are read. */
const STEP_WORK = 8;

export interface SliceContext {
  readonly tenant: string;
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
}

/**
 * Keeps a query from holding the thread, and ends it when its caller is gone. In each turn of the event loop a few
 * paused queries continue and a few calls begin, tenants in rotation: a short call waits for a slice or two, however
 * many queries there are. Waiting for the store does not hold the thread. Queries whose answers came in one turn share
 * one slice; the query that finds it over pauses.
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

  /** The tenant that pays for the work. */
  get tenant(): string {
    return this.#context.tenant;
  }

  /**
   * Call once for every row; when true, await `pause`. `work` says how many ordinary rows a row is worth, without the
   * texts that its functions read and made.
   */
  isOver(work = 1): boolean {
    this.#rows += work + THREAD_TEXT_WORK.take() / CHARACTERS_PER_ROW;
    if (this.#rows < ROWS_PER_LOOK) return false;
    this.#rows = 0;
    return this.isOverNow();
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

/** Does the work step by step, in slices. Each step yields the bytes that its result holds, which `memory` takes. */
export async function inSlices<T>(
  steps: Generator<number, T>,
  slices: Slices,
  memory?: Pick<MemoryShare, "take">,
): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    memory?.take(step.value);
    if (slices.isOver(STEP_WORK)) await slices.pause();
  }
}
