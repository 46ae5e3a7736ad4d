import type { MemoryShare } from "../expressions/aggregates/memory.ts";
import { THREAD_TEXT_WORK, ZoneOffsets } from "../expressions/functions/textwork.ts";
import { type SliceContext, ThreadSlices } from "../../../turns/slices.ts";

/** `zones`: those of the statement; absent: each of its parts counts for itself. */
export type QuerySliceContext = SliceContext & { readonly zones?: ZoneOffsets | undefined };

/** Rows between two looks at the clock. */
const ROWS_PER_LOOK = 64;
/** Characters that functions read and make in the time in which an ordinary row is read. */
const CHARACTERS_PER_ROW = 4_096;
/** A statement or a row of one takes as long as some rows that are read. */
const STEP_WORK = 8;

/** Slices of a query, which looks at the clock every few rows, and bounds what its statement looks up of zones. */
export class Slices extends ThreadSlices {
  readonly zones: ZoneOffsets;
  #rows = 0;

  constructor(context: QuerySliceContext) {
    super(context);
    this.zones = context.zones ?? new ZoneOffsets();
  }

  /**
   * Call once for every row; when true, await `pause`. `work` says how many ordinary rows a row is worth, without the
   * texts that its functions read and made.
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

/** Does the work step by step, in slices; a step takes as long as so many ordinary rows. */
export async function afterSteps<T>(steps: Generator<unknown, T>, work: number, slices: Slices): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (slices.isOver(work)) await slices.pause();
  }
}

/** Does the work at once. */
export function drained<T>(steps: Generator<unknown, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
