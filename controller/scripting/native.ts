import { SCRIPT_NATIVE_LOOKS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import type { CallLine } from "../workers/index.ts";

interface Watched {
  readonly clock: Clock;
  readonly line: Pick<CallLine, "pulse">;
  readonly maxMs: number;
  /**
   * Processor time of the whole process so far, in ms. A run that gets no processor time on a busy machine does not
   * count as one that cannot be stopped. Absent: elapsed time counts in any case.
   */
  readonly processorMs?: (() => number) | undefined;
}

/** Share of the time between two checks that the process must have used a processor for the check to count. */
const USED_SHARE = 0.5;

/**
 * Calls `onOver` once if a run continues for `maxMs` without a point at which it could be stopped. Returns a function
 * that ends the watch.
 */
export function watchNative({ clock, line, maxMs, processorMs }: Watched, onOver: () => void): () => void {
  const leastMs = (maxMs / SCRIPT_NATIVE_LOOKS) * USED_SHARE;
  let seen: number | undefined;
  let usedMs = 0;
  let looksAlike = 0;
  let isOver = false;
  let cancel = (): void => {};
  const look = (): void => {
    const { pulse } = line;
    const nowUsedMs = processorMs?.() ?? usedMs + leastMs;
    const isAlike = pulse !== undefined && pulse === seen;
    if (!isAlike) looksAlike = 0;
    else if (nowUsedMs - usedMs >= leastMs) looksAlike += 1;
    // Too little processor time for this check is carried over to the next one.
    if (!isAlike || nowUsedMs - usedMs >= leastMs) usedMs = nowUsedMs;
    seen = pulse;
    if (looksAlike >= SCRIPT_NATIVE_LOOKS) return onOver();
    // A clock that jumps, e.g. after a pause of the whole process, causes one check and not all of them.
    queueMicrotask(watch);
  };
  const watch = (): void => {
    if (!isOver) cancel = clock.after(maxMs / SCRIPT_NATIVE_LOOKS, look);
  };
  watch();
  return () => {
    isOver = true;
    cancel();
  };
}
