import { expect, test } from "vitest";
import { seededRandom } from "../../../../../test/helpers/time/clock.ts";
import { Quantiles } from "./quantiles.ts";

const unbounded = { take: () => {} };

test("ranks among runs are those of all numbers sorted together", () => {
  const random = seededRandom(3);
  for (const count of [1, 2, 7, 2_047, 2_048, 2_049, 10_000]) {
    const few = random.next() < 0.5;
    const numbers = Array.from({ length: count }, () =>
      few ? Math.floor(random.next() * 9) : (random.next() - 0.5) * 1e6,
    );
    const quantiles = new Quantiles(unbounded);
    for (const number of numbers) quantiles.add(number);
    const sorted = numbers.toSorted((left, right) => left - right);
    for (const share of [0, 0.01, 0.25, 0.5, 0.95, 0.999, 1]) {
      const place = share * (count - 1);
      const lower = sorted[Math.floor(place)] ?? NaN;
      const upper = sorted[Math.ceil(place)] ?? NaN;
      expect(quantiles.at(share), `${count} numbers, ${share}`).toBe(
        lower + (upper - lower) * (place - Math.floor(place)),
      );
    }
    const middle = sorted[count >> 1] ?? 0;
    expect(quantiles.upTo(middle)).toBe(numbers.filter((number) => number <= middle).length);
    expect(quantiles.below(middle)).toBe(numbers.filter((number) => number < middle).length);
  }
});

test("numbers at the ends of what a double holds have ranks too", () => {
  const quantiles = new Quantiles(unbounded);
  for (const number of [Number.MAX_VALUE, -Number.MAX_VALUE, Number.MIN_VALUE, 0, -0, 1]) quantiles.add(number);
  expect([0, 0.4, 0.6, 1].map((share) => quantiles.at(share))).toEqual([
    -Number.MAX_VALUE,
    0,
    Number.MIN_VALUE,
    Number.MAX_VALUE,
  ]);
  expect(new Quantiles(unbounded).at(0.5)).toBeUndefined();
});
