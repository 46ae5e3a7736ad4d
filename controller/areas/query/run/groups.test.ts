import { beforeAll, expect, test } from "vitest";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { MemoryObjects } from "../../../../test/helpers/objects/memory/objects.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { QueryService } from "../index.ts";

const admin = testPrincipal();
const query = new QueryService({
  objects: new MemoryObjects({ nowMs: () => 0 }),
  runtime: testRuntime(realClock),
});

beforeAll(async () => {
  await query.rows(
    admin,
    "create class /matrix/box (name varchar, size int, seen timestamp, sizes map<varchar,int>, keys(name))",
  );
});

test("what is computed of groups has the type of what comes out", async () => {
  const { meta } = await query.run(
    admin,
    "select max(size) > 1 as big, upper(min(name)) as first, max(seen) + 1 as later, sum(size) / 2 as half, case when count(*) > 1 then 'many' end as many from /matrix/box group by name",
  );
  const types = meta.columns["/matrix/box"]?.map(({ name, type }) => [name, type]);
  expect(types).toEqual([
    ["big", "boolean"],
    ["first", "varchar"],
    ["later", "timestamp"],
    ["half", "double"],
    ["many", "varchar"],
  ]);
});

/** Before, the first two were accepted, and the others told without a place once the inner SELECT was read. */
test.each([
  ["HAVING", "explain select name from /matrix/box group by name having\nsubstring(name, name) = 'a'"],
  ["a column of groups", "explain select\nsubstring(name, name) as x, count(*) as n from /matrix/box group by name"],
  [
    "a SELECT that asks another one",
    "select name, max(\nsubstring('a', sizes)) as x from /matrix/box group by name having name in (select name from /matrix/box)",
  ],
  [
    "a SELECT inside",
    "select x from (select count(*) as x from /matrix/box group by name having\nsubstring(name, name) = 'a') y",
  ],
  [
    "a JOIN that asks a SELECT",
    "select a.name from /matrix/box a join (b:/matrix/box) on a.name = b.name where a.name in (select name from /matrix/box) and\nsubstring('a', b.sizes) = a.name || b.name",
  ],
])("a wrong type is refused at planning, with its place: %s", async (_, text) => {
  const asked = query.rows(admin, text);
  await expect(asked).rejects.toMatchObject({ code: "invalid", details: { line: 2, column: 1 } });
});
