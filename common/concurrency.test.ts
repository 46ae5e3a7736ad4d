import { expect, test } from "vitest";
import { mapLimited, withinTime } from "./concurrency.ts";
import type { Clock } from "./time.ts";

test("no more than the limit works at a time, and answers keep their order", async () => {
  let working = 0;
  let most = 0;
  const answers = await mapLimited([5, 1, 4, 2, 3], 2, async (item) => {
    most = Math.max(most, ++working);
    for (let turn = 0; turn < item; turn++) await Promise.resolve();
    working--;
    return item * 10;
  });
  expect(answers).toEqual([50, 10, 40, 20, 30]);
  expect(most).toBe(2);
});

test("one failure fails all, and nothing to do is done at once", async () => {
  await expect(
    mapLimited([1, 2], 1, (item) => (item === 2 ? Promise.reject(new Error("two")) : Promise.resolve(item))),
  ).rejects.toThrow("two");
  expect(await mapLimited([], 4, () => Promise.resolve(1))).toEqual([]);
});

test("after a failure nothing more begins", async () => {
  const begun: number[] = [];
  const work = (item: number): Promise<void> => {
    begun.push(item);
    return item === 1 ? Promise.reject(new Error("one")) : Promise.resolve();
  };
  await expect(mapLimited([1, 2, 3, 4, 5, 6], 2, work)).rejects.toThrow("one");
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  expect(begun).toEqual([1, 2]);
});

test("work that is late is answered as absent, work that fails fails", async () => {
  const callbacks: (() => void)[] = [];
  const clock: Clock = {
    nowMs: () => 0,
    monotonicMs: () => 0,
    after: (_delay, callback) => (callbacks.push(callback), () => {}),
  };
  const late = withinTime(clock, new Promise<number>(() => {}), 10);
  callbacks[0]?.();
  expect(await late).toBeUndefined();
  expect(await withinTime(clock, Promise.resolve(1), 10)).toBe(1);
  await expect(withinTime(clock, Promise.reject(new Error("no")), 10)).rejects.toThrow("no");
});
