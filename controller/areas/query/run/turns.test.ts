import { beforeAll, expect, test, vi } from "vitest";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { MemoryObjects } from "../../../../test/helpers/objects/memory/objects.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { QueryService } from "../index.ts";
import { Slices } from "./slice.ts";
import { rowWorkOf } from "./work.ts";

const ROWS = 640;
/** A slice looks at the clock once for 64 ordinary rows. */
const LOOKS_PER_STEP = ROWS / 64;

const admin = testPrincipal();
let nowMs = 0;
/** At each look a slice is over. */
const slow = { ...realClock, monotonicMs: () => (nowMs += 1_000) };
const objects = new MemoryObjects({ nowMs: () => 0, pageSize: ROWS });
const query = new QueryService({ objects, runtime: { clock: slow } });

beforeAll(async () => {
  const values = Array.from({ length: ROWS }, (_, at) => `(${at}, ["box:1"])`).join(", ");
  await query.run(admin, "create edge type holds; create class /matrix/box (size int)");
  await query.run(admin, `insert into /matrix/box (size, holds) values ${values}`);
});

const eight = (value: (at: number) => string): readonly string[] => Array.from({ length: 8 }, (_, at) => value(at));

/** Steps: so many times each row is handled, its cost counted. */
test.each([
  ["select size from /matrix/box limit -1", 2],
  ["select distinct size from /matrix/box limit -1", 2],
  ["select size from /matrix/box order by size limit 5", 2],
  ["select size from /matrix/box order by size limit -1", 3],
  ["select distinct size from /matrix/box order by size limit -1", 3],
  ["select max(size) from /matrix/box", 2],
  ["select size, count(*) from /matrix/box group by size", 3],
  ["select size, count(*) from /matrix/box group by size order by size", 4],
  ["select row_number() over (order by size) as n from /matrix/box limit -1", 6],
  ["select lag(size) over (order by size) as n from /matrix/box limit -1", 6],
  ["select sum(size) over (order by size) as n from /matrix/box limit -1", 6],
  ["select rate(size) over (order by vtime) as n from /matrix/box limit -1", 6],
  ["select size from /matrix/box union all select size from /matrix/box limit -1", 4],
  ["select size from /matrix/box union select size from /matrix/box order by size limit -1", 6],
  ["select a.size from /matrix/box a join (b:/matrix/box) on b.size = a.size limit -1", 5],
  ["select size from /matrix/box where size in (select size from /matrix/box) limit -1", 4],
  ["select size, holds.size from /matrix/box limit -1", 4],
  ["select size from /matrix/box where holds.size = 1 limit -1", 4],
  // Eight fields that are compared, made, ordered or grouped by cost as much as one row.
  [`select size from /matrix/box where ${eight(() => "size >= 0").join(" and ")} limit -1`, 3],
  [`select ${eight((at) => `size as c${at}`).join(", ")} from /matrix/box limit -1`, 3],
  [`select ${eight((at) => `size as c${at}`).join(", ")} from /matrix/box order by size limit 5`, 3],
  [`select ${eight((at) => `max(size) as m${at}`).join(", ")} from /matrix/box`, 3],
])("others get their turn at each step of each row: %s", async (text, steps) => {
  const pauses = vi.spyOn(Slices.prototype, "pause");
  await query.rows(admin, text);
  expect(Math.floor(pauses.mock.calls.length / LOOKS_PER_STEP)).toBe(steps);
  pauses.mockRestore();
});

test("a whole row costs as much as one more that is read", () => {
  const one = { outputs: [], orderBy: [], grouping: undefined };
  expect(rowWorkOf(one)).toBe(1);
  expect(rowWorkOf({ ...one, outputs: [{ kind: "star" }] })).toBe(2);
});

test("others get their turn between the steps of a long plan", async () => {
  const looks = vi.spyOn(Slices.prototype, "isOver");
  await query.run(admin, `select size from /matrix/box where ${"size = 1 or ".repeat(4_000)} size = 2`);
  // Values are settled, sub-selects looked for, reads planned.
  expect(looks.mock.calls.filter(([work = 1]) => work >= ROWS)).toHaveLength(3);
  looks.mockRestore();
});
