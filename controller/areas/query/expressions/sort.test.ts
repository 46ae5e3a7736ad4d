import { afterAll, expect, test } from "vitest";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { PROCESS_MEMORY } from "./aggregates/memory.ts";
import { Sorter, type SortKey } from "./sort.ts";

const memory = PROCESS_MEMORY.share("matrix");
afterAll(() => memory.close());
const ROWS = 20_000;
const KEPT = 50;

test("the first rows of an order are the same when those beyond them are never made, and few are made", () => {
  const random = seededRandom(7);
  const all: (readonly SortKey[])[] = Array.from({ length: ROWS }, () => [
    Math.floor(random.next() * 500),
    random.next() < 0.1 ? null : `t${Math.floor(random.next() * 9)}`,
  ]);
  const descending = [true, false];
  const sorter = new Sorter(descending, { keep: KEPT, memory });
  let made = 0;
  for (const [arrival, keys] of all.entries()) {
    if (sorter.isBeyond(keys)) continue;
    made += 1;
    sorter.add({ keys, row: { arrival } });
  }
  const whole = new Sorter(descending, { memory });
  for (const [arrival, keys] of all.entries()) whole.add({ keys, row: { arrival } });
  expect([...sorter.rows()].slice(0, KEPT)).toEqual([...whole.rows()].slice(0, KEPT));
  expect(made).toBeLessThan(ROWS / 4);
});
