import { withReplaced } from "../../../../test/helpers/objects/replaced.ts";
import { expect, test } from "vitest";
import { MQL_SUB_SELECTS_MAX, QUERY_SUB_SELECT_VALUES_MAX } from "../../../../common/limits.ts";
import { MemoryObjects } from "../../../../test/helpers/objects/memory/objects.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { PROCESS_MEMORY } from "../expressions/aggregates/memory.ts";
import { QueryService } from "../service.ts";

const principal = testPrincipal();

async function numbers(count: number): Promise<QueryService> {
  const query = new QueryService({ objects: new MemoryObjects({ nowMs: () => 0 }), runtime: testRuntime() });
  await query.rows(principal, "create class /matrix/number (n int, keys(n))");
  for (let from = 0; from < count; from += 5_000) {
    const rows = Array.from({ length: Math.min(5_000, count - from) }, (_, at) => `(${from + at})`);
    await query.rows(principal, `insert into /matrix/number (n) values ${rows.join(", ")}`);
  }
  return query;
}

test("a SELECT in a condition answers all its rows, but no more values than may be held, and nothing stays held", async () => {
  const query = await numbers(QUERY_SUB_SELECT_VALUES_MAX + 1);
  const before = PROCESS_MEMORY.bytes;
  const asked = (inner: string) =>
    query.rows(principal, `select count(*) as c from /matrix/number where n in (select ${inner} from /matrix/number)`);
  await expect(asked("n")).rejects.toMatchObject({ code: "too_large" });
  expect(await asked("mod(n, 500)")).toEqual([{ c: 500 }]);
  expect(PROCESS_MEMORY.bytes).toBe(before);
});

test("a change goes by what its SELECTs answered at its begin, whatever others write while it is made", async () => {
  const objects = new MemoryObjects({ nowMs: () => 0 });
  const plain = new QueryService({ objects, runtime: testRuntime() });
  await plain.rows(
    principal,
    `create class /matrix/box (n int, size int, keys(n)); create class /matrix/mark (n int, keys(n));
    insert into /matrix/box (n, size) values (1, 0), (2, 0), (3, 0); insert into /matrix/mark (n) values (1), (2)`,
  );
  const disturbed = withReplaced(objects, {
    update: async (...args) => {
      await plain.rows(principal, "delete from /matrix/mark; insert into /matrix/mark (n) values (3)");
      return objects.unrestricted.update(...args);
    },
  });
  const changed = await new QueryService({ objects: disturbed, runtime: testRuntime() }).rows(
    principal,
    "update /matrix/box set size = size + 1 where n in (select n from /matrix/mark)",
  );
  expect(changed).toEqual([{ count: 2 }]);
  expect(await plain.rows(principal, "select n from /matrix/box where size = 1 order by n")).toEqual([
    { n: 1 },
    { n: 2 },
  ]);
});

test("a statement has so many SELECTs in its conditions and not one more, also inside each other", async () => {
  const query = await numbers(3);
  const side = (count: number) =>
    Array.from({ length: count }, () => "n in (select n from /matrix/number)").join(" and ");
  const nested = (count: number): string =>
    count === 0 ? "n > 0" : `n in (select n from /matrix/number where ${nested(count - 1)})`;
  for (const where of [side, nested]) {
    const text = (count: number) => `select n from /matrix/number where ${where(count)}`;
    expect(await query.rows(principal, text(MQL_SUB_SELECTS_MAX))).not.toHaveLength(0);
    await expect(query.rows(principal, text(MQL_SUB_SELECTS_MAX + 1))).rejects.toMatchObject({ code: "too_large" });
  }
});
