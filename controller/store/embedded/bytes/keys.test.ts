import { expect, test } from "vitest";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import {
  compareBytes,
  following,
  prefixEnd,
  readU64,
  readU64Descending,
  textBytes,
  u64,
  u64Descending,
} from "./keys.ts";
import { numberPrefix, ulidBoundary } from "./object-keys.ts";

const random = seededRandom(20_261_121);
const sign = (value: number): number => Math.sign(value);

test("numbers lie in their order", () => {
  const keyOf = (value: number): Uint8Array => numberPrefix(3, value);
  const numbers = [-Infinity, -1e300, -2, -1.5, -1e-300, 0, 1e-300, 0.5, 1, 2, 2 ** 53, 1e300, Infinity];
  for (let i = 0; i < 500; i++) numbers.push((random.next() - 0.5) * 10 ** Math.floor(random.next() * 30));
  for (const a of numbers)
    for (const b of numbers.slice(0, 40)) expect(sign(compareBytes(keyOf(a), keyOf(b)))).toBe(sign(a - b) || 0);
  expect(keyOf(-0)).toEqual(keyOf(0));
});

test("times lie in their order, or against it, and come back", () => {
  const times = [0, 1, 255, 256, 2 ** 32 - 1, 2 ** 32, 1_700_000_000_000_000, Number.MAX_SAFE_INTEGER];
  for (const a of times) {
    expect(readU64(u64(a), 0)).toBe(a);
    expect(readU64Descending(u64Descending(a), 0)).toBe(a);
    for (const b of times) {
      expect(sign(compareBytes(u64(a), u64(b)))).toBe(sign(a - b));
      expect(sign(compareBytes(u64Descending(a), u64Descending(b)))).toBe(sign(b - a));
    }
  }
});

test("the end of a prefix is after all that begin with it and before the next", () => {
  const prefix = Uint8Array.of(1, 255, 255);
  const end = prefixEnd(prefix)!;
  expect(end).toEqual(Uint8Array.of(2));
  expect(compareBytes(Uint8Array.of(1, 255, 255, 255, 255), end)).toBeLessThan(0);
  expect(prefixEnd(Uint8Array.of(255, 255))).toBeUndefined();
  expect(compareBytes(following(prefix), prefix)).toBeGreaterThan(0);
});

test("the border of a moment lies before its first id and after every earlier one", () => {
  const border = ulidBoundary(1_469_922_850_259);
  expect(compareBytes(border, textBytes("01ARZ3NDEK0000000000000000"))).toBeLessThan(0);
  expect(compareBytes(border, textBytes("01ARZ3NDEJZZZZZZZZZZZZZZZZ"))).toBeGreaterThan(0);
  expect(compareBytes(ulidBoundary(Infinity), textBytes("7ZZZZZZZZZZZZZZZZZZZZZZZZZ"))).toBeGreaterThan(0);
});
