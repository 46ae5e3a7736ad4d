import { expect } from "vitest";

/** How many times as many random cases as in every run: `npm run soak` sets it. */
export const TIMES = Number(process.env["ODP_TEST_TIMES"] ?? 1);

/** Changes of one thing until it counts as old; `npm run soak` makes as many as years do. */
export const AGED_CHANGES = TIMES > 1 ? 10_000 : 2_000;

/**
 * True where measured times have bounds: `npm run soak -- --timed N` sets it. Every other run asserts what it can count,
 * as a busy machine may stand still for seconds.
 */
export const ARE_TIMES_BOUND = process.env["ODP_TEST_TIMED"] === "1";

/** Fails when a measured time is beyond its bound, where times have bounds. */
export function expectWithin(tookMs: number, maxMs: number, what?: string): void {
  if (ARE_TIMES_BOUND) expect(tookMs, what).toBeLessThan(maxMs);
}
