import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { KeyedQueue } from "./keyed-queue.ts";

/** Jobs that note their beginning and wait to be let go. */
function jobs() {
  const queue = new KeyedQueue();
  const begun: string[] = [];
  const release = new Map<string, () => void>();
  const job = (name: string, keys: readonly string[]): Promise<string> =>
    queue.run(keys, async () => {
      begun.push(name);
      await new Promise<void>((resolve) => release.set(name, resolve));
      return name;
    });
  const end = async (name: string): Promise<void> => {
    release.get(name)?.();
    await turn();
  };
  return { queue, begun, job, end };
}

test("jobs of one key go one after the other in their order, those of other keys beside them", async () => {
  const { begun, job, end } = jobs();
  const all = [job("first", ["a"]), job("second", ["a"]), job("third", ["a"]), job("other", ["b"])];
  await turn();
  expect(begun).toEqual(["first", "other"]);
  await end("first");
  expect(begun).toEqual(["first", "other", "second"]);
  await end("second");
  await end("third");
  await end("other");
  expect(await Promise.all(all)).toEqual(["first", "second", "third", "other"]);
});

test("a job of several keys waits for all of them and holds up each", async () => {
  const { begun, job, end } = jobs();
  const all = [job("a", ["a"]), job("b", ["b"]), job("both", ["b", "a"]), job("later", ["a"])];
  await turn();
  await end("a");
  expect(begun).toEqual(["a", "b"]);
  await end("b");
  expect(begun).toEqual(["a", "b", "both"]);
  await end("both");
  await end("later");
  expect(await Promise.all(all)).toEqual(["a", "b", "both", "later"]);
});

test("a job that names a key twice does not wait for itself, and one that fails lets the next one go", async () => {
  const { queue } = jobs();
  const failed = queue.run(["a", "a"], () => Promise.reject(new Error("no")));
  const next = queue.run(["a", "b", "a"], () => Promise.resolve("next"));
  await expect(failed).rejects.toThrow("no");
  expect(await next).toBe("next");
});

test("a job whose signal fires before its turn is left out at once, and later ones still wait for the earlier", async () => {
  const { queue, begun, job, end } = jobs();
  const abort = new AbortController();
  const first = job("first", ["a"]);
  const left = queue.run(["a"], () => Promise.resolve(void begun.push("left")), abort.signal);
  const later = job("later", ["a"]);
  abort.abort(new Error("too late"));
  await expect(left).rejects.toThrow("too late");
  await turn();
  expect(begun).toEqual(["first"]);
  await end("first");
  await turn();
  expect(begun).toEqual(["first", "later"]);
  await end("later");
  await Promise.all([first, later]);
  const done = queue.run(["a"], () => Promise.resolve("done"), AbortSignal.abort());
  expect(await done, "nothing to wait for").toBe("done");
});
