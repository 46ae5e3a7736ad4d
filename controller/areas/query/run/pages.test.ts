import { expect, test } from "vitest";
import { OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { cutAt, paged, windowed } from "./pages.ts";
import { Slices } from "./slice.ts";

const slices = new Slices({ tenant: "matrix", clock: realClock, signal: undefined });

function rows(count: number): readonly Row[] {
  return Array.from({ length: count }, (_, at) => ({ at }));
}

interface Source {
  readonly pages: AsyncIterable<readonly Row[]>;
  /** How many pages were taken. */
  readonly read: () => number;
}

/** Pages of three, two, three and one row. */
function source(): Source {
  let read = 0;
  const pages = async function* (): AsyncIterable<readonly Row[]> {
    for (const [from, to] of [
      [0, 3],
      [3, 5],
      [5, 8],
      [8, 9],
    ]) {
      read += 1;
      yield await Promise.resolve(rows(9).slice(from, to));
    }
  };
  return { pages: pages(), read: () => read };
}

async function all(pages: AsyncIterable<readonly Row[]>): Promise<readonly (readonly unknown[])[]> {
  const found: (readonly unknown[])[] = [];
  for await (const page of pages) found.push(page.map(({ at }) => at));
  return found;
}

test.each([
  ["nothing", 0, 1, []],
  ["one row", 1, 1, [1]],
  ["a full page", OBJECT_PAGE_MAX, 1, [OBJECT_PAGE_MAX]],
  ["one row more", OBJECT_PAGE_MAX + 1, 1, [OBJECT_PAGE_MAX, 1]],
  ["wide rows", OBJECT_PAGE_MAX, 2, [OBJECT_PAGE_MAX / 2, OBJECT_PAGE_MAX / 2]],
] as const)("%s comes in full pages, none of them empty", async (_, count, rowWork, sizes) => {
  expect((await all(paged(rows(count), slices, rowWork))).map(({ length }) => length)).toEqual(sizes);
});

test.each([
  [0, undefined, 4, [[0, 1, 2], [3, 4], [5, 6, 7], [8]]],
  [0, 0, 0, []],
  [0, 3, 1, [[0, 1, 2]]],
  [2, 2, 2, [[2], [3]]],
  [3, 2, 2, [[3, 4]]],
  [4, 9, 4, [[4], [5, 6, 7], [8]]],
  [9, 9, 4, []],
])("of OFFSET %j LIMIT %j no more than %i pages are read", async (offset, limit, read, answered) => {
  const told = source();
  expect(await all(windowed(told.pages, { offset, limit }))).toEqual(answered);
  expect(told.read()).toBe(read);
});

test.each([
  [8, 4, 1],
  [9, 4, 0],
  [2, 1, 1],
])("an answer cut at %i rows says whether there is another one", async (limit, read, times) => {
  const told = source();
  let more = 0;
  expect((await all(cutAt(told.pages, limit, () => (more += 1)))).flat()).toHaveLength(limit);
  expect([told.read(), more]).toEqual([read, times]);
});

test("an answer without rows that could be cut has no page", async () => {
  const none = (async function* (): AsyncIterable<readonly Row[]> {
    yield await Promise.resolve([]);
  })();
  expect(await all(cutAt(none, 1, undefined))).toEqual([]);
});
