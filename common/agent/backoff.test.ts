import { expect, test } from "vitest";
import { backoffMs } from "./backoff.ts";

const chance = (next: number) => ({ next: () => next });

test("a pause doubles from the interval with each failure, up to its bound", () => {
  const pauses = [1, 2, 3, 4, 1_000].map((failures) =>
    backoffMs({ failures, intervalMs: 1_000, maxMs: 10_000 }, chance(0)),
  );
  expect(pauses).toEqual([2_000, 4_000, 8_000, 10_000, 10_000]);
});

test("chance takes up to a half of it", () => {
  expect(backoffMs({ failures: 1, intervalMs: 1_000, maxMs: 10_000 }, chance(1))).toBe(1_000);
  expect(backoffMs({ failures: 9, intervalMs: 1_000, maxMs: 10_000 }, chance(0.5))).toBe(7_500);
});
