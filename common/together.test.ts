import { expect, test } from "vitest";
import { Together } from "./together.ts";

interface Piece {
  readonly items: readonly number[];
  readonly end: (error?: Error) => void;
}

function scene({ lanes = 1, most = 10 } = {}) {
  const begun: Piece[] = [];
  const together = new Together<number>({
    ...{ lanes, most, failsAll: (error) => (error as Error).message === "away" },
    work: (items) =>
      new Promise((resolve, reject) => {
        begun.push({ items, end: (error) => (error === undefined ? resolve() : reject(error)) });
      }),
  });
  const told: string[] = [];
  const ask = (...items: readonly number[]): void => {
    for (const item of items)
      together.do(item).then(
        () => told.push(`${item} done`),
        (error: Error) => told.push(`${item} ${error.message}`),
      );
  };
  const end = async (at: number, error?: Error): Promise<void> => {
    begun[at]?.end(error);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { together, told, ask, end, items: () => begun.map(({ items }) => items) };
}

test("what is asked for while others are done goes together, in its order and in bounded pieces", async () => {
  const { together, told, ask, end, items } = scene({ most: 3 });
  ask(1, 2, 3, 4, 5);
  expect(items()).toEqual([[1]]);
  await end(0);
  expect([items(), told]).toEqual([[[1], [2, 3, 4]], ["1 done"]]);
  ask(6);
  await end(1);
  expect(items()).toEqual([[1], [2, 3, 4], [5, 6]]);
  expect(together.isIdle).toBe(false);
  await end(2);
  expect(told).toEqual([1, 2, 3, 4, 5, 6].map((n) => `${n} done`));
  expect(together.isIdle).toBe(true);
  const two = scene({ lanes: 2 });
  two.ask(1, 2, 3, 4);
  expect(two.items()).toEqual([[1], [2]]);
  await two.end(1);
  expect([two.items(), two.told]).toEqual([[[1], [2], [3, 4]], ["2 done"]]);
});

test("a piece that fails by one of its items is done item by item; where all fail each is told so", async () => {
  const { told, ask, end, items } = scene();
  ask(1, 2, 3);
  await end(0);
  await end(1, new Error("too large"));
  expect(items()).toEqual([[1], [2, 3], [2], [3]]);
  await end(2, new Error("too large"));
  ask(4, 5);
  await end(3);
  expect(told).toEqual(["1 done", "2 too large", "3 done"]);
  await end(4, new Error("away"));
  expect(told.slice(3)).toEqual(["4 away", "5 away"]);
  ask(6);
  await end(5);
  expect(told.at(-1)).toBe("6 done");
});
