import { expect, test } from "vitest";
import { dueAccount } from "./due-account.ts";

test("each second from the first run to the last is a run or in a gap, whatever was missed before and after", () => {
  const gap = (fromMs: number, count: number) => ({ fromMs, count });
  const between = [gap(5_000, 2)];
  expect(dueAccount([3_000, 4_000, 7_000], between)).toEqual({ due: 5, runs: 3, skipped: 2 });
  const around = [gap(1_000, 2), ...between, gap(8_000, 3)];
  expect(dueAccount([7_000, 3_000, 4_000], around)).toEqual({ due: 5, runs: 3, skipped: 2 });
  expect(dueAccount([3_000, 7_000], between)).toEqual({ due: 5, runs: 2, skipped: 2 });
});
