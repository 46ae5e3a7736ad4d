/** Time is passed in, never looked up: only `main.ts` knows the real clock. */

export interface Clock {
  /** Milliseconds since 1970, may jump. */
  nowMs(): number;
  /** Milliseconds that never go back, for measuring spans and deadlines. */
  monotonicMs(): number;
  /** Calls back once after `delayMs`; the answer cancels it. Does not keep the process alive. */
  after(delayMs: number, callback: () => void): () => void;
}

/** Randomness is passed in as well, so that a seed replays a run. */
export interface Random {
  /** In [0, 1). */
  next(): number;
  /** Unpredictable bytes when the source is the real one. */
  bytes(count: number): Uint8Array;
}

/**
 * Resolves after `delayMs`, at once when one of the signals fires. Each is listened to by itself: `AbortSignal.any` leaves
 * something behind at a signal that lasts.
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
