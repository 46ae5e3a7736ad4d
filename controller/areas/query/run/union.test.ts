import { expect, test } from "vitest";
import type { Row } from "../../../../common/value.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { NUMBER } from "../expressions/kind.ts";
import { Slices } from "./slice.ts";
import { united, type UnionPlan } from "./union.ts";

const UNORDERED: UnionPlan = { isAll: true, orderBy: [], sort: "none", offset: 0, limit: undefined, isCut: false };

/** How many pages of three were read when the first rows were answered, and all rows. */
async function answered(
  plan: UnionPlan,
  onMore?: () => void,
): Promise<{ readonly read: number; readonly sizes: readonly unknown[] }> {
  let pages = 0;
  const part = async function* (): AsyncIterable<readonly Row[]> {
    for (const size of [3, 1, 1]) {
      pages += 1;
      yield await Promise.resolve([{ size }]);
    }
  };
  const slices = new Slices({ tenant: "matrix", clock: realClock, signal: undefined });
  let read: number | undefined;
  const sizes: unknown[] = [];
  for await (const page of united(plan, [part()], { slices, onMore })) {
    read ??= pages;
    sizes.push(...page.map(({ size }) => size));
  }
  return { read: read ?? 0, sizes };
}

test.each([
  ["all rows without an order", UNORDERED, { read: 1, sizes: [3, 1, 1] }],
  ["different rows without an order", { ...UNORDERED, isAll: false }, { read: 1, sizes: [3, 1] }],
] as const)("a UNION of %s is answered while it is read", async (_, plan, told) => {
  expect(await answered(plan)).toEqual(told);
});

test("an order needs all rows first", async () => {
  const orderBy = [{ name: "size", kind: NUMBER, descending: false }] as const;
  expect(await answered({ ...UNORDERED, orderBy, sort: "all" })).toEqual({ read: 3, sizes: [1, 1, 3] });
});

test("the usual limit says whether it left rows out", async () => {
  const heard: string[] = [];
  const cut = { ...UNORDERED, isCut: true };
  expect((await answered({ ...cut, limit: 3 }, () => heard.push("three"))).sizes).toEqual([3, 1, 1]);
  expect((await answered({ ...cut, limit: 2 }, () => heard.push("two"))).sizes).toEqual([3, 1]);
  expect(heard).toEqual(["two"]);
});
