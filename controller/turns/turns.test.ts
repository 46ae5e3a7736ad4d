import { expect, test } from "vitest";
import { Turns } from "./turns.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("with nobody waiting, work begins in the same turn", async () => {
  const turns = new Turns({ alone: 2, shared: 1, sharedTurns: 100 });
  let begun = false;
  void turns.next("a").then(() => (begun = true));
  await Promise.resolve();
  await Promise.resolve();
  expect(begun).toBe(true);
});

test("who comes with one piece of work does not wait behind a hundred of another", async () => {
  const turns = new Turns({ alone: 2, shared: 1, sharedTurns: 100 });
  const order: string[] = [];
  const work = (name: string): Promise<unknown> => turns.next(name).then(() => order.push(name));
  const flood = Array.from({ length: 100 }, () => work("flood"));
  await turn();
  const mine = work("mine");
  await mine;
  expect(order.length).toBeLessThan(10);
  await Promise.all(flood);
  expect(order.filter((name) => name === "flood")).toHaveLength(100);
});

test("only so much begins in one turn", async () => {
  const turns = new Turns({ alone: 3, shared: 1, sharedTurns: 100 });
  let begun = 0;
  const all = Array.from({ length: 30 }, () => turns.next("a").then(() => begun++));
  let looks = 0;
  for (; begun < 30; looks++) await turn();
  expect(looks).toBeGreaterThanOrEqual(9);
  await Promise.all(all);
});

test("while several share the place less begins in a turn, and as much as before when one has it alone again", async () => {
  const turns = new Turns({ alone: 10, shared: 1, sharedTurns: 20 });
  const looksFor = async (count: number): Promise<number> => {
    let begun = 0;
    for (let left = count; left > 0; left--) void turns.next("a").then(() => begun++);
    let looks = 0;
    for (; begun < count; looks++) await turn();
    return looks;
  };
  expect(await looksFor(30)).toBeLessThan(10);
  await turns.next("b");
  expect(await looksFor(15)).toBeGreaterThan(10);
  expect(await looksFor(15)).toBeGreaterThan(1);
  expect(await looksFor(30)).toBeLessThan(10);
});
