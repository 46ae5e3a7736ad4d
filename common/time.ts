/** Time is a parameter, never read from a global: only `main.ts` uses the real clock. */

export interface Clock {
  /** Milliseconds since 1970. May jump. */
  nowMs(): number;
  /** Milliseconds that never go back, for durations and deadlines. */
  monotonicMs(): number;
  /** Calls `callback` once after `delayMs`. The returned function cancels the call. Does not keep the process alive. */
  after(delayMs: number, callback: () => void): () => void;
}

/** Randomness is a parameter, too, so that a seed can replay a run. */
export interface Random {
  /** In [0, 1). */
  next(): number;
  /** Unpredictable if the source is the real one. */
  bytes(count: number): Uint8Array;
}

/**
 * Resolves after `delayMs`, or immediately when a signal fires. Listens to each signal directly, because
 * `AbortSignal.any` leaks memory at a long-lived signal.
 */
export function wait(clock: Clock, delayMs: number, ...signals: readonly (AbortSignal | undefined)[]): Promise<void> {
  return new Promise((resolve) => {
    if (signals.some((signal) => signal?.aborted)) return resolve();
    const cancel = clock.after(delayMs, done);
    for (const signal of signals) signal?.addEventListener("abort", done, { once: true });
    function done(): void {
      cancel();
      for (const signal of signals) signal?.removeEventListener("abort", done);
      resolve();
    }
  });
}
