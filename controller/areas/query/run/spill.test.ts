import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { PROCESS_MEMORY } from "../expressions/aggregates/memory.ts";
import type { SortKey } from "../expressions/sort.ts";
import { SpillingSorter } from "./spill.ts";

const memory = PROCESS_MEMORY.share("matrix");
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-sort-"));
});

afterEach(() => rm(folder, { recursive: true }));
afterAll(() => memory.close());

async function sort(keys: readonly (readonly SortKey[])[], sorter: SpillingSorter): Promise<readonly Row[]> {
  try {
    for (const [index, own] of keys.entries()) {
      sorter.add({ keys: own, row: { index } });
      if (sorter.isFull) await sorter.spill();
    }
    const rows: Row[] = [];
    for await (const page of sorter.pages()) {
      expect(page.length).toBeLessThanOrEqual(OBJECT_PAGE_MAX);
      rows.push(...page);
    }
    return rows;
  } finally {
    expect(await readdir(folder)).toEqual([]);
    await sorter.close();
  }
}

test.each([0, 1, 7, 100, 101, 5_000])(
  "%i rows come in order, equal ones as they came, through runs of 100",
  async (count) => {
    const random = seededRandom(count);
    const texts = Array.from({ length: count }, () =>
      random.next() < 0.1 ? null : `k${Math.floor(random.next() * 40)}`,
    );
    const keys = texts.map((text): readonly SortKey[] => [
      text,
      random.next() < 0.5 ? 9007199254740993n : Math.floor(random.next() * 3),
    ]);
    const rows = await sort(keys, new SpillingSorter({ folder, share: memory }, [true, false], { rows: 100 }));
    const rank = (key: SortKey | undefined): string | number | bigint =>
      key === null || key === undefined ? "" : typeof key === "boolean" ? "" : key;
    const expected = keys
      .map((own, index) => ({ own, index }))
      .sort((left, right) => {
        const [a, b] = [rank(left.own[0]), rank(right.own[0])];
        if (a !== b) return a < b ? 1 : -1;
        const [c, d] = [rank(left.own[1]), rank(right.own[1])];
        return c !== d ? (c < d ? -1 : 1) : left.index - right.index;
      });
    expect(rows.map((row) => row.index)).toEqual(expected.map((entry) => entry.index));
  },
);

test("more than the disk may hold is refused", async () => {
  const keys = Array.from({ length: 1_000 }, (_, index) => [index]);
  await expect(
    sort(keys, new SpillingSorter({ folder, share: memory }, [false], { rows: 100, maxBytes: 10_000 })),
  ).rejects.toMatchObject({
    code: "too_large",
    details: { limit: "QUERY_SORT_SPILL_MAX_BYTES" },
  });
});
