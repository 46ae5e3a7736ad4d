import type { Clock } from "./time.ts";

interface Kept {
  readonly clock: Clock;
  /** How long after its end a result is answered. */
  readonly keptMs: number;
}

/** Calls at the same time share the work, and those that come soon after its end: all get its result or its failure. */
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
