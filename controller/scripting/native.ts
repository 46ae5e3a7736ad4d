import { SCRIPT_NATIVE_LOOKS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import type { CallLine } from "../workers/index.ts";

interface Watched {
  readonly clock: Clock;
  readonly line: Pick<CallLine, "pulse">;
  readonly maxMs: number;
  /**
   * Processor time of the whole process so far. A run that gets no processor, because the machine is busy with others,
   * is not taken for one that cannot be stopped. Absent: time passes for a run in any case.
   */
  readonly processorMs?: (() => number) | undefined;
}

/** Of the time between two looks: what the process has to have used of a processor for it to count. */
const USED_SHARE = 0.5;

/**
 * Calls `onOver` once when a run goes on for `maxMs` without a moment at which it could be stopped. Answers what ends
 * the watch.
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
    // Too little for this look counts for the next one.
    if (!isAlike || nowUsedMs - usedMs >= leastMs) usedMs = nowUsedMs;
    seen = pulse;
    if (looksAlike >= SCRIPT_NATIVE_LOOKS) return onOver();
    // A clock that leaps, as after a pause of the whole process, makes one look and not all of them.
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
