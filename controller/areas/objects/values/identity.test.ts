import { expect, test } from "vitest";
import { ulidOf } from "../../../../common/ids.ts";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { AscendingEntropy } from "./identity.ts";

const MS = 1_700_000_000_000;

function entropies(): AscendingEntropy {
  const random = seededRandom(1);
  return new AscendingEntropy((length) => random.bytes(length));
}

test("ids of one INSERT ascend, also where one of a later or earlier millisecond comes between its rows", () => {
  const entropy = entropies();
  const first = entropy.series(MS, 100);
  const ids = Array.from({ length: 100 }, (_, at) => {
    entropy.series(MS + (at % 3) - 1, 2)();
    return ulidOf(MS, first());
  });
  expect(ids).toEqual(ids.toSorted());
});

test("ids of INSERTs of one millisecond ascend in their order, and none is given twice", () => {
  const entropy = entropies();
  const series = [0, 3, 1, 5].map((count) => entropy.series(MS + 0.5, count));
  const ids = series.flatMap((next, at) => Array.from({ length: [0, 3, 1, 5][at] ?? 0 }, () => ulidOf(MS, next())));
  expect(ids).toEqual(ids.toSorted());
  // More than was expected of the first and of the last.
  const more = series.flatMap((next) => Array.from({ length: 10 }, () => ulidOf(MS, next())));
  expect(new Set([...ids, ...more]).size).toBe(ids.length + more.length);
});
