import { SCRIPT_NATIVE_LOOKS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import type { CallLine } from "../workers/index.ts";

interface Watched {
  readonly clock: Clock;
  readonly line: Pick<CallLine, "pulse">;
  readonly maxMs: number;
}

/**
 * Calls `onOver` once when a run goes on for `maxMs` without a moment at which it could be stopped. Answers what ends
 * the watch.
 */
export function watchNative({ clock, line, maxMs }: Watched, onOver: () => void): () => void {
  let seen: number | undefined;
  let looksAlike = 0;
  let isOver = false;
  let cancel = (): void => {};
  const look = (): void => {
    const { pulse } = line;
    looksAlike = pulse !== undefined && pulse === seen ? looksAlike + 1 : 0;
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
