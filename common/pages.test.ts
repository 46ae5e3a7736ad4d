import { expect, test } from "vitest";
import { lazyPages, onePage } from "./pages.ts";

async function all<T>(pages: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const page of pages) found.push(page);
  return found;
}

test("the one page is loaded when it is taken, once, and left out if it is empty", async () => {
  let loads = 0;
  const pages = onePage(() => Promise.resolve([(loads += 1)]));
  const taken = pages[Symbol.asyncIterator]();
  expect(loads).toBe(0);
  expect(await taken.next()).toEqual({ done: false, value: [1] });
  expect(await taken.next()).toEqual({ done: true, value: undefined });
  expect(loads).toBe(1);
  expect(await all(onePage(() => Promise.resolve([])))).toEqual([]);
});

test("a page that is not wanted any more is not loaded", async () => {
  let loads = 0;
  const taken = onePage(() => Promise.resolve([(loads += 1)]))[Symbol.asyncIterator]();
  await taken.return?.();
  expect(await taken.next()).toEqual({ done: true, value: undefined });
  expect(loads).toBe(0);
});

test.each([
  ["at hand", () => onePage(() => Promise.resolve([1]))],
  ["that comes later", () => Promise.resolve(onePage(() => Promise.resolve([1])))],
])("a source %s is opened by the first page", async (_, open) => {
  let opened = 0;
  const pages = lazyPages(() => ((opened += 1), open()));
  expect(opened).toBe(0);
  expect(await all(pages)).toEqual([[1]]);
  expect(opened).toBe(1);
});

test.each([
  [
    "throws",
    (): never => {
      throw new Error("no source");
    },
  ],
  ["rejects", () => Promise.reject(new Error("no source"))],
])("a source whose opening %s rejects the first page", async (_, open) => {
  const first = lazyPages(open)[Symbol.asyncIterator]().next();
  await expect(first).rejects.toThrow("no source");
});
