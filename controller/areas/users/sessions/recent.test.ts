import { expect, test } from "vitest";
import { SIGN_IN_CACHE_MAX_ENTRIES, SIGN_IN_CACHE_MS } from "../../../../common/limits.ts";
import { TestClock } from "../../../../test/helpers/time/runtime.ts";
import { RecentReads } from "./recent.ts";

const clock = new TestClock();

test("a read is made once in a while, and never answered later than that, counted from its begin", async () => {
  const reads = new RecentReads<number>(clock);
  let loads = 0;
  const read = () => reads.read("a", () => Promise.resolve(++loads));
  expect(await Promise.all([read(), read()])).toEqual([1, 1]);
  const slow = deferred<number>();
  const late = reads.read("b", () => slow.promise);
  clock.advance(SIGN_IN_CACHE_MS - 1);
  expect(await read()).toBe(1);
  slow.resolve(7);
  expect(await late).toBe(7);
  clock.advance(1);
  expect(await read()).toBe(2);
  expect(await reads.read("b", () => Promise.resolve(8))).toBe(8);
});

test("what is not there and what failed is read again", async () => {
  const reads = new RecentReads<number>(clock);
  expect(await reads.read("a", () => Promise.resolve(undefined))).toBeUndefined();
  await expect(reads.read("a", () => Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(await reads.read("a", () => Promise.resolve(1))).toBe(1);
});

test("a read that crosses a write is not kept", async () => {
  const reads = new RecentReads<string>(clock);
  const before = deferred<string>();
  const during = deferred<string>();
  const crossing = [reads.read("a", () => before.promise)];
  const write = deferred<void>();
  const writing = reads.written("a", () => write.promise);
  crossing.push(reads.read("a", () => during.promise));
  write.resolve();
  await writing;
  before.resolve("old");
  during.resolve("old");
  expect(await Promise.all(crossing)).toEqual(["old", "old"]);
  expect(await reads.read("a", () => Promise.resolve("new"))).toBe("new");
  const failing = reads.written("a", () => Promise.reject(new Error("who knows")));
  await expect(failing).rejects.toThrow("who knows");
  expect(await reads.read("a", () => Promise.resolve("newer"))).toBe("newer");
});

test("no more are kept than there is room for", async () => {
  const reads = new RecentReads<string>(clock);
  for (let n = 0; n <= SIGN_IN_CACHE_MAX_ENTRIES; n++) await reads.read(`k${n}`, () => Promise.resolve("first"));
  expect(await reads.read("k1", () => Promise.resolve("second"))).toBe("first");
  expect(await reads.read("k0", () => Promise.resolve("second"))).toBe("second");
});

function deferred<T>() {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((done) => (resolve = done));
  return { promise, resolve };
}
