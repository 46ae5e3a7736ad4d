import { expect } from "vitest";

/** Factor for the number of random cases; 1 in every run, more in `npm run soak`. */
export const TIMES = Number(process.env["ODP_TEST_TIMES"] ?? 1);

/**
 * True if measured times have bounds, as with `npm run soak -- --timed N`. All other runs assert counts, because a busy
 * machine may pause for seconds.
 */
export const ARE_TIMES_BOUND = process.env["ODP_TEST_TIMED"] === "1";

/** Fails if a measured time exceeds its bound, in runs where times have bounds. */
export function expectWithin(tookMs: number, maxMs: number, what?: string): void {
  if (ARE_TIMES_BOUND) expect(tookMs, what).toBeLessThan(maxMs);
}
