import { SCRIPT_NATIVE_LOOKS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import type { CallLine } from "../workers/index.ts";

interface Watched {
  readonly clock: Clock;
  readonly line: Pick<CallLine, "pulse" | "thread">;
  readonly maxMs: number;
  /**
   * Processor time of a thread so far, in ms. A run that gets no processor time on a busy machine does not count as one
   * that cannot be stopped. Absent: elapsed time counts in any case.
   */
  readonly processorMs?: ((thread: number | undefined) => number) | undefined;
}

/**
 * Calls `onOver` once if a run uses the processor for `maxMs` without a point at which it could be stopped. Returns a
 * function that ends the watch.
 */
export function watchNative({ clock, line, maxMs, processorMs }: Watched, onOver: () => void): () => void {
  const lookMs = maxMs / SCRIPT_NATIVE_LOOKS;
  let seen: number | undefined;
  let usedMs = 0;
  let stretchMs = 0;
  let isOver = false;
  let cancel = (): void => {};
  const look = (): void => {
    const { pulse, thread } = line;
    const nowUsedMs = processorMs?.(thread) ?? usedMs + lookMs;
    // If the clock jumps, for example after a pause of the whole process, that counts as one check and not as many. The
    // time used seems to decrease after a check that could only read the time of the whole process.
    if (pulse !== undefined && pulse === seen) stretchMs += Math.min(Math.max(nowUsedMs - usedMs, 0), lookMs);
    else stretchMs = 0;
    [seen, usedMs] = [pulse, nowUsedMs];
    if (stretchMs >= maxMs) return onOver();
    queueMicrotask(watch);
  };
  const watch = (): void => {
    if (!isOver) cancel = clock.after(lookMs, look);
  };
  watch();
  return () => {
    isOver = true;
    cancel();
  };
}
