import { expect, test } from "vitest";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { HASH_BITS } from "./hashes.ts";
import { bucketOf } from "./bucket-levels.ts";
import { BEGINNING, compare, END, PostingStream, type Posting, type Position } from "./posting-stream.ts";

const random = seededRandom(7);

function someHash(): number {
  return Math.floor(random.next() * 2 ** HASH_BITS);
}

/** Postings by bucket, each written at one or two of the levels. */
function written(count: number, level: number): { readonly rows: Posting[]; readonly buckets: Map<number, Posting[]> } {
  const buckets = new Map<number, Posting[]>();
  const put = (posting: Posting, at: number): void => {
    const bucket = bucketOf(posting.hash, at);
    buckets.set(bucket, [...(buckets.get(bucket) ?? []), posting].sort(compare));
  };
  const rows = Array.from({ length: count }, (_, n): Posting => {
    // Some have the same hash, and differ in the class or only in the bytes of the id.
    const hash = n % 5 === 0 ? 12_345 : someHash();
    const posting = { hash, cid: n % 2, id: n % 3 === 0 ? `\u{1F600}${n}` : `\uFF5E${n}`, timeUs: 10 };
    const at = Math.floor(random.next() * (level + 1));
    put(posting, at);
    if (n % 4 !== 0 || at === level) return posting;
    const again = { ...posting, timeUs: 20 };
    put(again, level);
    return again;
  });
  return { rows: rows.sort(compare), buckets };
}

async function drained(stream: PostingStream): Promise<Posting[]> {
  const all: Posting[] = [];
  while (!stream.ended) all.push(...(await stream.next()));
  return all;
}

test.each([
  [0, 0, 3],
  [1, 0, 1],
  [40, 0, 7],
  [200, 3, 5],
  [200, 3, 1_000],
  [300, 6, 2],
])(
  "of %i postings at levels up to %i, read by %i, each comes once, in order, with its latest time",
  async (count, level, limit) => {
    const { rows, buckets } = written(count, level);
    const read = (bucket: number, after: Position): Promise<readonly Posting[]> =>
      Promise.resolve((buckets.get(bucket) ?? []).filter((row) => compare(row, after) > 0).slice(0, limit));
    const from = (after: Position) => new PostingStream({ read, rowsPerRead: limit, level, after });
    expect(await drained(from(BEGINNING))).toEqual(rows);
    for (const at of [0, Math.floor(count / 3), count - 1]) {
      const after = rows[at];
      if (after !== undefined) expect(await drained(from(after))).toEqual(rows.slice(at + 1));
    }
  },
);

test("where nearly all have left, the buckets of a level are read in few steps, and no row is asked for twice", async () => {
  const level = 9;
  const { rows, buckets } = written(30, level);
  const asked: number[] = [];
  const read = (bucket: number, after: Position): Promise<readonly Posting[]> => {
    asked.push(bucket);
    return Promise.resolve((buckets.get(bucket) ?? []).filter((row) => compare(row, after) > 0).slice(0, 100));
  };
  const stream = new PostingStream({ read, rowsPerRead: 100, level, after: BEGINNING });
  const all: Posting[] = [];
  let steps = 0;
  for (; !stream.ended; steps += 1) all.push(...(await stream.next()));
  expect(all).toEqual(rows);
  expect(new Set(asked).size).toBe(asked.length);
  expect(asked).toHaveLength(2 ** (level + 1) - 1);
  expect(steps).toBeLessThan(asked.length / 8);
});

test("buckets of a level cover all hashes, and those of two levels are different partitions", () => {
  const greatest = 2 ** HASH_BITS - 1;
  expect([0, greatest].map((hash) => bucketOf(hash, 0))).toEqual([0, 0]);
  expect([0, greatest].map((hash) => bucketOf(hash, 1))).toEqual([1, 2]);
  expect([0, greatest].map((hash) => bucketOf(hash, 3))).toEqual([7, 14]);
  expect(compare(END, { hash: greatest, cid: 0x7fff_ffff, id: "~" })).toBeGreaterThan(0);
});
