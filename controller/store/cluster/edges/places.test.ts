import { expect, test } from "vitest";
import { EDGE_BUCKETS } from "../../../../common/limits.ts";
import { edgeBuckets, edgeRow, edgeRows, levelOfBucket } from "./places.ts";

const placed = { from: { cid: 1, id: "a" }, edge: { type: "to", to: { cid: 2, id: "b" } } };

test("levels share no bucket, and each has twice as many as the one before", () => {
  const levels = [0, 1, 2, 3, 4, 5, 6, 7].map(edgeBuckets);
  expect(levels.map((buckets) => buckets.length)).toEqual([8, 16, 32, 64, 128, 256, 512, 1_024]);
  expect(levels.flat()).toEqual(Array.from({ length: 255 * EDGE_BUCKETS }, (_, bucket) => bucket));
  for (const [level, buckets] of levels.entries()) expect(buckets.map(levelOfBucket)).toEqual(buckets.map(() => level));
});

test("the row of an edge is one of all its rows, at either end", () => {
  for (const side of ["out", "in"] as const)
    for (const level of [0, 1, 3]) {
      const { params } = edgeRow(side, placed, level);
      const { where, params: all } = edgeRows(side, placed, 3);
      expect(where).toContain("bucket IN (?, ?, ?, ?)");
      expect(levelOfBucket(params[2] as number)).toBe(level);
      expect(all[2 + level]).toBe(params[2]);
      expect([...all.slice(0, 2), ...all.slice(6)]).toEqual([...params.slice(0, 2), ...params.slice(3)]);
    }
});
