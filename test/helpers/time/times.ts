import { expect } from "vitest";

/** Factor for the number of random cases; 1 in every run, more in `npm run soak`. */
export const TIMES = Number(process.env["ODP_TEST_TIMES"] ?? 1);

/** Changes of one thing until it counts as old; `npm run soak` makes as many as years do. */
export const AGED_CHANGES = TIMES > 1 ? 10_000 : 2_000;

/**
 * Returns the seeds of a random test: those that once found something, and `count` others; `npm run soak` takes more of
 * them, beginning with its own. `ODP_TEST_SEED` alone replays that seed.
 */
export function seedsOf(
  found: readonly number[],
  count: number,
  { times = TIMES, seed = process.env["ODP_TEST_SEED"] }: { times?: number; seed?: string | undefined } = {},
): readonly number[] {
  const first = Number(seed || 1);
  if (seed && times === 1) return [first];
  return [...found, ...Array.from({ length: count * times }, (_, index) => first + index)];
}

/**
 * True if measured times have bounds, as with `npm run soak -- --timed N`. All other runs assert counts, because a busy
 * machine may pause for seconds.
 */
export const ARE_TIMES_BOUND = process.env["ODP_TEST_TIMED"] === "1";

/** Fails if a measured time exceeds its bound, in runs where times have bounds. */
export function expectWithin(tookMs: number, maxMs: number, what?: string): void {
  if (ARE_TIMES_BOUND) expect(tookMs, what).toBeLessThan(maxMs);
}
