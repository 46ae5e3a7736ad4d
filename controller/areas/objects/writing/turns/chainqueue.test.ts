import { expect, test } from "vitest";
import { ChainQueue } from "./chainqueue.ts";

const refused = { code: "invalid", message: expect.stringContaining("may not write") as string };
const circle = { code: "conflict", message: expect.stringContaining("would wait") as string };

/** Work that ends when it is told to. */
function held(): { readonly work: () => Promise<void>; readonly end: () => void } {
  let end = (): void => undefined;
  const over = new Promise<void>((resolve) => (end = resolve));
  return { work: () => over, end };
}

const chain = (id: string, ...holds: readonly string[]) => ({ id, holds });

test("jobs of one key run one after the other, of several keys when all are free", async () => {
  const queue = new ChainQueue();
  const order: string[] = [];
  const first = held();
  const jobs = [
    queue.run(["a", "b"], undefined, first.work),
    queue.run(["b", "c"], undefined, () => Promise.resolve(void order.push("bc"))),
    queue.run(["c"], undefined, () => Promise.resolve(void order.push("c"))),
    queue.run(["d"], undefined, () => Promise.resolve(void order.push("d"))),
  ];
  await jobs[3];
  first.end();
  await Promise.all(jobs);
  expect(order).toEqual(["d", "bc", "c"]);
});

test("a chain is refused what it holds, also several steps deep, and may write the rest", async () => {
  const queue = new ChainQueue();
  await queue.run(["a", "b"], chain("one"), async () => {
    await queue.run(["c"], chain("one", "a", "b"), async () => {
      for (const key of ["a", "b", "c"])
        await expect(queue.run([key], chain("one", "a", "b", "c"), () => Promise.resolve())).rejects.toMatchObject(
          refused,
        );
      expect(await queue.run(["d"], chain("one", "a", "b", "c"), () => Promise.resolve("d"))).toBe("d");
    });
  });
  expect(await queue.run(["a"], chain("two"), () => Promise.resolve("free"))).toBe("free");
});

test("the write that would close a circle of waiting chains is refused, through plain writes in between too", async () => {
  const queue = new ChainQueue();
  const [inOne, inTwo] = [held(), held()];
  const one = queue.run(["a"], chain("one"), async () => {
    await inOne.work();
    return queue.run(["b"], chain("one", "a"), () => Promise.resolve("one in b"));
  });
  const two = queue.run(["b"], chain("two"), async () => {
    await inTwo.work();
    await expect(queue.run(["a", "x"], chain("two", "b"), () => Promise.resolve())).rejects.toMatchObject(circle);
    await expect(queue.run(["p"], chain("two", "b"), () => Promise.resolve())).rejects.toMatchObject(circle);
    return "two is done";
  });
  // Waits for the first chain; every job that wants p waits for it.
  const plain = queue.run(["a", "p"], undefined, () => Promise.resolve("plain"));
  inOne.end();
  await Promise.resolve();
  await Promise.resolve();
  inTwo.end();
  expect(await Promise.all([one, two, plain])).toEqual(["one in b", "two is done", "plain"]);
});

test("when one of two waiting jobs of a chain runs, the other one still counts", async () => {
  const queue = new ChainQueue();
  const [one, two] = [held(), held()];
  const first = queue.run(["a"], undefined, one.work);
  const second = queue.run(["b"], chain("two"), async () => {
    await two.work();
    await expect(queue.run(["x"], chain("two", "b"), () => Promise.resolve())).rejects.toMatchObject(circle);
  });
  const inA = queue.run(["a"], chain("one", "x"), () => Promise.resolve("in a"));
  const inB = queue.run(["b"], chain("one", "x"), () => Promise.resolve("in b"));
  const holder = queue.run(["x"], chain("one"), () => Promise.all([inA, inB]));
  one.end();
  await Promise.all([first, inA]);
  two.end();
  await second;
  expect(await holder).toEqual(["in a", "in b"]);
});
