import { SCRIPT_LONG_RUN_MS, SCRIPT_LOOK_MS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import type { CallLine } from "../workers/index.ts";

interface Watched {
  readonly clock: Clock;
  readonly line: Pick<CallLine, "pulse" | "thread">;
  /** Processor time without a point at which the run could be stopped, in ms. */
  readonly nativeMaxMs: number;
  /**
   * Processor time of a thread so far, in ms. A run that gets no processor time on a busy machine does not count as one
   * that cannot be stopped. Absent: elapsed time counts in any case.
   */
  readonly processorMs?: ((thread: number | undefined) => number) | undefined;
  /** Called once, if the run uses the processor for `nativeMaxMs` without a point at which it could be stopped. */
  readonly onNative: () => void;
  /** Called once, with the number of its thread, if the run has used the processor for `SCRIPT_LONG_RUN_MS`. */
  readonly onLong: (thread: number) => void;
}

/** Watches the processor time that a run uses. Returns a function that ends the watch. */
export function watchRun({ clock, line, nativeMaxMs, processorMs, onNative, onLong }: Watched): () => void {
  let looked: { readonly pulse: number | undefined; readonly usedMs: number } | undefined;
  let nativeMs = 0;
  let runMs = 0;
  let isLong = false;
  let isOver = false;
  let cancel = (): void => {};
  const look = (): void => {
    const { pulse, thread } = line;
    const beforeMs = looked?.usedMs ?? 0;
    const usedMs = processorMs?.(thread) ?? beforeMs + SCRIPT_LOOK_MS;
    // If the clock jumps, for example after a pause of the whole process, that counts as one check and not as many. The
    // time used seems to decrease after a check that could only read the time of the whole process. At the first check,
    // the thread's earlier runs are included.
    const newMs = looked ? Math.min(Math.max(usedMs - beforeMs, 0), SCRIPT_LOOK_MS) : 0;
    nativeMs = pulse !== undefined && pulse === looked?.pulse ? nativeMs + newMs : 0;
    runMs += thread === undefined ? 0 : newMs;
    looked = { pulse, usedMs };
    if (nativeMs >= nativeMaxMs) return onNative();
    if (thread !== undefined && !isLong && runMs >= SCRIPT_LONG_RUN_MS) {
      isLong = true;
      onLong(thread);
    }
    queueMicrotask(watch);
  };
  const watch = (): void => {
    if (!isOver) cancel = clock.after(SCRIPT_LOOK_MS, look);
  };
  watch();
  return () => {
    isOver = true;
    cancel();
  };
}
