import { expect, test } from "vitest";
import { SORT_RUN_ITEMS } from "../../common/limits.ts";
import { sortedInSlices } from "./sorting.ts";

/** Slices that are always over, and the number of pauses. */
function pausing() {
  let pauses = 0;
  return {
    slices: { isOverNow: () => true, pause: () => Promise.resolve(void pauses++) },
    count: () => pauses,
  };
}

test.each([0, 1, SORT_RUN_ITEMS, 2 * SORT_RUN_ITEMS + 1, 5 * SORT_RUN_ITEMS])(
  "%s items are sorted by their keys, and equal keys keep their order",
  async (count) => {
    const items = Array.from({ length: count }, (_, at) => ({ key: String((at * 7_919) % 1_009), at }));
    const found = await sortedInSlices(items, ({ key }) => key, pausing().slices);
    const expected = [...items].sort((one, other) => (one.key < other.key ? -1 : Number(one.key > other.key)));
    expect(found).toEqual(expected);
  },
);

test("no more than one run is sorted, or merged, between two pauses", async () => {
  const { slices, count } = pausing();
  const items = Array.from({ length: 8 * SORT_RUN_ITEMS }, (_, at) => String(at));
  await sortedInSlices(items, (item) => item, slices);
  // Eight runs are sorted. Each of the three rounds of merging passes all items again.
  expect(count()).toBeGreaterThanOrEqual(8 + 3 * 4);
});
