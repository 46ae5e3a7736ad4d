import { expect, test } from "vitest";
import { seededRandom } from "../../../../../test/helpers/time/clock.ts";
import { CounterGrowth } from "./growth.ts";

const free = { take: () => undefined };

function rateOf(pairs: readonly (readonly [number, number])[]): number | undefined {
  const growth = new CounterGrowth(free);
  for (const [timeMs, value] of pairs) growth.add(timeMs, value);
  return growth.perSecond();
}

test("is the growth from the first value to the last for each second", () => {
  expect(
    rateOf(
      [
        [0, 100],
        [10_000, 150],
        [20_000, 400],
      ].map(([at = 0, value = 0]) => [at, value] as const),
    ),
  ).toBe(15);
});

test("counts on where the counter began again", () => {
  expect(rateOf([[0, 100] as const, [10_000, 150], [20_000, 30]])).toBe(4);
});

test("is nothing of no value, of one, and of one time", () => {
  expect(rateOf([])).toBeUndefined();
  expect(rateOf([[5, 1]])).toBeUndefined();
  expect(rateOf([[5, 1] as const, [5, 9]])).toBeUndefined();
});

test("does not depend on the order in which 10,000 values come", () => {
  const random = seededRandom(5);
  const pairs = Array.from(
    { length: 10_000 },
    () => [Math.floor(random.next() * 1_000) * 1_000, Math.floor(random.next() * 500)] as const,
  );
  const sorted = pairs.toSorted(([a, x], [b, y]) => a - b || x - y);
  let growth = 0;
  for (const [at, [, value]] of sorted.entries()) {
    const before = sorted[at - 1]?.[1] ?? value;
    growth += value < before ? value : value - before;
  }
  const seconds = ((sorted.at(-1)?.[0] ?? 0) - (sorted[0]?.[0] ?? 0)) / 1_000;
  expect(rateOf(pairs)).toBe(growth / seconds);
  expect(rateOf(pairs.toReversed())).toBe(growth / seconds);
});

test("takes memory for what it holds", () => {
  let bytes = 0;
  const growth = new CounterGrowth({ take: (more: number) => (bytes += more) });
  for (let at = 0; at < 3_000; at += 1) growth.add(at, at);
  expect(bytes).toBeGreaterThanOrEqual(3_000 * 16);
});
