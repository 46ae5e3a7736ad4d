import { SCRIPT_NATIVE_LOOKS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import type { CallLine } from "../workers/index.ts";

interface Watched {
  readonly clock: Clock;
  readonly line: Pick<CallLine, "pulse" | "thread">;
  readonly maxMs: number;
  /**
   * Processor time of a thread so far. A run that gets no processor, because the machine is busy with others, is not
   * taken for one that cannot be stopped. Absent: time passes for a run in any case.
   */
  readonly processorMs?: ((thread: number | undefined) => number) | undefined;
}

/**
 * Calls `onOver` once when a run uses the processor for `maxMs` without a moment at which it could be stopped. Answers
 * what ends the watch.
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
    // A clock that leaps, as after a pause of the whole process, makes one look and not all of them.
    if (pulse !== undefined && pulse === seen) stretchMs += Math.min(nowUsedMs - usedMs, lookMs);
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
