import { expect, test } from "vitest";
import { wholeSince, type Repair } from "./repairs.ts";

const LEAST = -(2n ** 63n);
const THIRD = -3074457345618258603n;
const SECOND_THIRD = 3074457345618258602n;

function repair(startedMs: number, ...ranges: readonly (readonly [bigint, bigint])[]): Repair {
  return { tables: ["present"], startedMs, ranges: ranges.map(([after, to]) => ({ after, to })) };
}

test("a ring is repaired since the oldest of the newest repairs that cover it together", () => {
  const parts = [
    repair(10, [LEAST, THIRD]),
    repair(30, [THIRD, SECOND_THIRD]),
    repair(20, [SECOND_THIRD, LEAST]),
    repair(5, [LEAST, THIRD], [SECOND_THIRD, LEAST]),
  ];
  expect(wholeSince(parts)).toBe(10);
  expect(wholeSince([...parts, repair(40, [LEAST, THIRD])])).toBe(20);
});

test("what no repair covered leaves the ring unrepaired", () => {
  expect(wholeSince([])).toBeUndefined();
  expect(wholeSince([repair(10, [LEAST, THIRD]), repair(20, [SECOND_THIRD, LEAST])])).toBeUndefined();
  expect(wholeSince([repair(10, [LEAST, THIRD]), repair(20, [THIRD + 1n, LEAST])])).toBeUndefined();
});

test("ranges may go over the end of the ring, cover it whole, overlap and be in pieces", () => {
  expect(wholeSince([repair(1, [SECOND_THIRD, THIRD]), repair(2, [THIRD, SECOND_THIRD])])).toBe(1);
  expect(wholeSince([repair(7, [0n, 0n])])).toBe(7);
  expect(wholeSince([repair(7, [LEAST, LEAST])])).toBe(7);
  expect(wholeSince([repair(1, [LEAST, 5n]), repair(2, [0n, 100n]), repair(3, [99n, LEAST])])).toBe(1);
});
