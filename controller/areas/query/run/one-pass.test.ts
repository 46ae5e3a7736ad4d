import { beforeEach, expect, test } from "vitest";
import { OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import { admin, boxes, collect, objects, openQueries, query, ruled } from "../../../../test/helpers/mql/query-world.ts";

openQueries();
beforeEach(() => boxes(35));

const BOX = "/matrix/ent/box";

/** Sizes in the pages of the answer. */
async function pages(text: string, by = admin): Promise<readonly (readonly unknown[])[]> {
  const found: (readonly unknown[])[] = [];
  for await (const page of (await query.run(by, text)).rows) found.push(page.map(({ size }) => size));
  return found;
}

const from = (first: number, count: number): readonly number[] => Array.from({ length: count }, (_, at) => first + at);

test.each([
  ["limit -1", [from(0, 10), from(10, 10), from(20, 10), from(30, 5)]],
  ["limit -1 offset 12", [from(12, 8), from(20, 10), from(30, 5)]],
  ["limit 3 offset 9", [[9], [10, 11]]],
  ["limit 10", [from(0, 10)]],
  ["limit 0", []],
  ["limit 5 offset 40", []],
  ["where size > 12 limit 9", [from(13, 7), [20, 21]]],
  ["where size > 99 limit 9", []],
  ["offset 30", [from(30, 5)]],
])("%s answers rows as they are read, in pages without empty ones", async (rest, sizes) => {
  expect(await pages(`select size from ${BOX} ${rest}`)).toEqual(sizes);
});

test("rows that the principal does not see count neither for OFFSET nor for LIMIT", async () => {
  const some = ruled({ class: "/", access: "read", where: "size in (1, 11, 21, 31)" });
  expect(await pages(`select size from ${BOX} limit 2 offset 1`, some)).toEqual([[11], [21]]);
});

test("what stands behind the last row of the answer is not read", async () => {
  const { rows } = await query.run(admin, `select size from ${BOX} limit 10`);
  const of = objects.unrestricted.read.bind(objects);
  let taken = 0;
  objects.unrestricted.read = (...given) => {
    const inner = of(...given)[Symbol.asyncIterator]();
    const next = async () => {
      const page = await inner.next();
      if (page.done !== true && page.value.length > 0) taken += 1;
      return page;
    };
    return { [Symbol.asyncIterator]: () => ({ next }) };
  };
  expect(await collect(rows)).toHaveLength(10);
  expect(taken).toBe(1);
});

test("wide pages are cut, so that their reader is not kept waiting for all of it", async () => {
  const ids = from(0, 2 * OBJECT_PAGE_MAX).map((n) => ({ host: `x${n}` }));
  await objects.unrestricted.insert(admin, BOX, ids);
  const sizes = (await pages(`select host, ${"size, ".repeat(20)} size from ${BOX} limit -1`)).map(
    ({ length }) => length,
  );
  expect(Math.max(...sizes)).toBeLessThanOrEqual(OBJECT_PAGE_MAX);
});
