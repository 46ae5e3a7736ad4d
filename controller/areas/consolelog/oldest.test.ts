import { expect, test } from "vitest";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { oldest, type TimeRange } from "./oldest.ts";

const NOW_MS = 1_900_000_000_000;

interface Row {
  readonly vtimeMs: number;
  readonly at: number;
}

/** Rows in pages, newest first; counts the rows read. */
class Rows {
  readonly #rows: readonly Row[];
  read = 0;

  constructor(timesMs: readonly number[]) {
    this.#rows = timesMs.toSorted((a, b) => a - b).map((vtimeMs, at) => ({ vtimeMs, at }));
  }

  async *in({ fromMs, toMs }: TimeRange): AsyncGenerator<readonly Row[]> {
    const found = this.#rows.filter(({ vtimeMs }) => vtimeMs >= fromMs && vtimeMs <= toMs).reverse();
    for (let at = 0; at < found.length; at += 64) {
      const page = found.slice(at, at + 64);
      this.read += page.length;
      yield await Promise.resolve(page);
      yield [];
    }
  }
}

const random = seededRandom(7);
const times = (count: number, spanMs: number, power = 1) =>
  Array.from({ length: count }, () => NOW_MS - Math.floor(spanMs * random.next() ** power));

test.each([
  ["none", []],
  ["one in the future", [NOW_MS + 86_400_000]],
  ["all in one millisecond", times(1_000, 0)],
  ["all in two milliseconds", times(1_000, 2)],
  ["even over a month", times(20_000, 30 * 86_400_000)],
  ["most of them just now", times(20_000, 30 * 86_400_000, 12)],
  ["two heaps far apart", [...times(5_000, 10), ...times(5_000, 10).map((time) => time - 20 * 86_400_000)]],
  ["some ahead of the clock", [...times(2_000, 1_000), ...times(2_000, 1_000).map((time) => time + 5_000)]],
])("%s: the oldest, of any number, wherever it begins", async (_name, timesMs) => {
  const sorted = timesMs.toSorted((a, b) => a - b);
  for (const limit of [1, 7, 200]) {
    for (const fromMs of [0, NOW_MS - 40 * 86_400_000, NOW_MS - 500]) {
      const rows = new Rows(timesMs);
      const found = await oldest({ read: (range) => rows.in(range), limit, nowMs: NOW_MS, fromMs, toMs: 2 ** 48 - 1 });
      expect(found.map(({ vtimeMs }) => vtimeMs)).toEqual(sorted.filter((time) => time >= fromMs).slice(0, limit));
    }
  }
});

test("however many come after, about as many are read as are answered", async () => {
  const rows = new Rows(times(50_000, 30 * 86_400_000));
  const fromMs = NOW_MS - 30 * 86_400_000;
  await oldest({ read: (range) => rows.in(range), limit: 200, nowMs: NOW_MS, fromMs, toMs: 2 ** 48 - 1 });
  expect(rows.read).toBeLessThan(2_000);
});
