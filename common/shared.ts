import type { Clock } from "./time.ts";

interface Kept {
  readonly clock: Clock;
  /** Time after its end for which a result is still returned. */
  readonly keptMs: number;
}

/**
 * Concurrent calls share one run of `work`; with `kept`, calls soon after its end share it, too. All get its result or
 * its failure.
 */
export function shared<T>(work: () => Promise<T>, kept?: Kept): () => Promise<T> {
  let last: Promise<T> | undefined;
  let untilMs = Number.POSITIVE_INFINITY;
  return () => {
    if (last !== undefined && (kept === undefined || kept.clock.monotonicMs() < untilMs)) return last;
    untilMs = Number.POSITIVE_INFINITY;
    last = work().finally(() => {
      if (kept === undefined) last = undefined;
      else untilMs = kept.clock.monotonicMs() + kept.keptMs;
    });
    return last;
  };
}
