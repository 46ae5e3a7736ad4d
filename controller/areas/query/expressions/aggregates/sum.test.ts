import { expect, test } from "vitest";
import type { Value } from "../../../../../common/value.ts";
import { Sum } from "./sum.ts";

function sumOf(values: readonly (number | bigint)[]): { readonly total: Value; readonly mean: Value } {
  const sum = new Sum();
  for (const value of values) sum.add(value);
  return { total: sum.total(), mean: sum.mean() };
}

test("integers are added exactly, also beyond 2^53", () => {
  expect(sumOf([1, 2, -4])).toEqual({ total: -1, mean: -1 / 3 });
  expect(sumOf([Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 1]).total).toBe("18014398509481983");
  expect(sumOf([9007199254740993n, 2, -9007199254740990n]).total).toBe(5);
  expect(sumOf([9007199254740993n, 9007199254740993n]).mean).toBe(9007199254740992);
});

test("the error of many fractions does not add up", () => {
  expect(sumOf(Array.from({ length: 1_000_000 }, () => 0.1)).total).toBe(100_000);
  expect(sumOf([1, 1e100, 1, -1e100]).total).toBe(2);
  expect(sumOf([0.5, 3]).total).toBe(3.5);
  expect(sumOf([0.5, 9007199254740993n, -9007199254740992n]).total).toBe(1.5);
});

test("beyond what a double holds there is no number, wherever on the way", () => {
  expect(sumOf([1e308, 1e308])).toEqual({ total: null, mean: null });
  expect(sumOf([-1e308, -1e308, 5])).toEqual({ total: null, mean: null });
  expect(sumOf([1e308, 5]).total).toBe(1e308);
});
