export interface DueAccount {
  /** Due seconds from the first run to the last one. */
  readonly due: number;
  readonly runs: number;
  /** Seconds of these that gaps count. */
  readonly skipped: number;
}

export interface CountedGap {
  /** First of the due times, in milliseconds. */
  readonly fromMs: number;
  readonly count: number;
}

/**
 * The due seconds of a policy that runs every second. Gaps before the first run do not count: an agent that begins late
 * has missed due times before it has run anything. Neither do gaps after the last run that is known.
 */
export function dueAccount(scheduledMs: readonly number[], gaps: readonly CountedGap[]): DueAccount {
  const [first, last] = [Math.min(...scheduledMs), Math.max(...scheduledMs)];
  const skipped = gaps
    .filter(({ fromMs }) => fromMs > first && fromMs <= last)
    .reduce((sum, { count }) => sum + count, 0);
  return { due: (last - first) / 1_000 + 1, runs: scheduledMs.length, skipped };
}
