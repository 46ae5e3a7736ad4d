import type { MemoryShare } from "../expressions/aggregates/memory.ts";
import { THREAD_TEXT_WORK, ZoneOffsets } from "../expressions/functions/textwork.ts";
import { type SliceContext, ThreadSlices } from "../../../turns/slices.ts";

/** `zones` counts look-ups of the whole statement; absent: each part of the statement counts for itself. */
export type QuerySliceContext = SliceContext & { readonly zones?: ZoneOffsets | undefined };

/** Rows between two checks of the clock. */
const ROWS_PER_LOOK = 64;
/** Characters that functions read and make in the time of reading one ordinary row. */
const CHARACTERS_PER_ROW = 4_096;
/** Cost of one step, in ordinary rows. A step handles one statement, or one row of a statement. */
const STEP_WORK = 8;

/** Slices of a query. Looks at the clock every few rows, and limits the look-ups of time zones by the statement. */
export class Slices extends ThreadSlices {
  readonly zones: ZoneOffsets;
  #rows = 0;

  constructor(context: QuerySliceContext) {
    super(context);
    this.zones = context.zones ?? new ZoneOffsets();
  }

  /**
   * Call once for every row; when true, await `pause`. `work`: cost of the row in ordinary rows, without the texts that
   * its functions read and made.
   */
  isOver(work = 1): boolean {
    this.#rows += work + THREAD_TEXT_WORK.take() / CHARACTERS_PER_ROW;
    this.zones.add(THREAD_TEXT_WORK.takeOffsets());
    if (this.#rows < ROWS_PER_LOOK) return false;
    this.#rows = 0;
    return this.isOverNow();
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

/**
 * Does the work step by step, in slices. `work`: cost of one step in ordinary rows. Work that fits into the slice is
 * done when this returns.
 */
export function afterSteps<T>(steps: Generator<unknown, T>, work: number, slices: Slices): T | Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (slices.isOver(work)) return afterPause(steps, work, slices);
  }
}

/** A loop, not a chain of promises: long work has thousands of pauses. */
async function afterPause<T>(steps: Generator<unknown, T>, work: number, slices: Slices): Promise<T> {
  for (;;) {
    await slices.pause();
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      if (slices.isOver(work)) break;
    }
  }
}

/** Does the work at once. */
export function drained<T>(steps: Generator<unknown, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
