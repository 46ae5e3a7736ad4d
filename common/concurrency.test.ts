import { describe, expect, test } from "vitest";
import { mapLimited, oneAhead, readAhead, withinTime } from "./concurrency.ts";
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

describe("a source that is read one item ahead", () => {
  function source(last: number) {
    const told: string[] = [];
    const items = async function* (): AsyncGenerator<number> {
      try {
        for (let item = 1; item <= last; item++) {
          told.push(`begun ${item}`);
          yield await Promise.resolve(item);
        }
        throw new Error("behind the last");
      } finally {
        told.push("ended");
      }
    };
    return { told, items: items() };
  }

  test("begins the next item before this one is done, and throws its failure at its place", async () => {
    const { told, items } = source(2);
    const read = async (): Promise<void> => {
      for await (const item of oneAhead(items)) {
        await Promise.resolve();
        told.push(`done ${item}`);
      }
    };
    await expect(read()).rejects.toThrow("behind the last");
    expect(told).toEqual(["begun 1", "begun 2", "done 1", "ended", "done 2"]);
  });

  test("is ended when its reader stops", async () => {
    const { told, items } = source(5);
    for await (const item of oneAhead(items)) if (item === 1) break;
    expect(told).toEqual(["begun 1", "begun 2", "ended"]);
  });
});

describe("what is read ahead", () => {
  /** Pieces of each item, and which items were begun and are open. */
  function pieces() {
    const [begun, open] = [[] as number[], new Set<number>()];
    const read = async function* (item: number): AsyncGenerator<string> {
      begun.push(item);
      open.add(item);
      try {
        await Promise.resolve();
        if (item === 3) throw new Error("three");
        yield `${item}a`;
        if (item !== 1) yield `${item}b`;
      } finally {
        open.delete(item);
      }
    };
    return { begun, open, read };
  }

  test("comes in the order of the items, the first pieces of so many next ones begun", async () => {
    const { begun, open, read } = pieces();
    const got: unknown[] = [];
    for await (const [item, texts] of readAhead([0, 1, 2, 4, 5], 2, read)) {
      for await (const text of texts) got.push([item, text, begun.length]);
    }
    expect(got).toEqual([
      [0, "0a", 3],
      [0, "0b", 3],
      [1, "1a", 4],
      [2, "2a", 5],
      [2, "2b", 5],
      [4, "4a", 5],
      [4, "4b", 5],
      [5, "5a", 5],
      [5, "5b", 5],
    ]);
    expect(open).toEqual(new Set());
  });

  test("fails where its piece would come, and what was begun beside it is closed", async () => {
    const { begun, open, read } = pieces();
    const got: string[] = [];
    const reading = async (): Promise<void> => {
      for await (const [, texts] of readAhead([2, 3, 4, 5, 6, 7], 2, read))
        for await (const text of texts) got.push(text);
    };
    await expect(reading()).rejects.toThrow("three");
    expect([got, begun, open]).toEqual([["2a", "2b"], [2, 3, 4, 5], new Set()]);
  });

  test("is closed when its reader leaves, in the middle of an item too", async () => {
    const { begun, open, read } = pieces();
    const first = async (): Promise<unknown> => {
      for await (const [, texts] of readAhead([2, 4, 5], 1, read)) for await (const text of texts) return text;
      return undefined;
    };
    expect(await first()).toBe("2a");
    expect([begun, open]).toEqual([[2, 4], new Set()]);
  });

  test("is closed when its reader leaves before it reads an item, and when it skips one", async () => {
    const { begun, open, read } = pieces();
    for await (const [item] of readAhead([2, 4, 5], 1, read)) if (item === 4) break;
    expect([begun, open]).toEqual([[2, 4, 5], new Set()]);
  });

  test("is nothing of no items", async () => {
    for await (const one of readAhead([], 2, pieces().read)) expect(one).toBeUndefined();
  });
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
