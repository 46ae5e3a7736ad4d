import { expect, test } from "vitest";
import { APPCONTEXT_LIST_MAX_ITEMS, SLICE_MAX_MS } from "../../../common/limits.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import { Slices } from "../query/index.ts";
import { HeldBytes } from "./held.ts";
import { endOf, listed } from "./listing.ts";
import type { StoredItem } from "./store.ts";

const slices = new Slices({ tenant: "matrix", clock: new TestClock(), signal: undefined });

async function* pagesOf(count: number, members: object = {}): AsyncGenerator<readonly StoredItem[]> {
  for (let from = 0; from < count; from += 100) {
    const length = Math.min(100, count - from);
    yield await Promise.resolve(Array.from({ length }, (_, at) => itemAt(from + at, members)));
  }
}

function itemAt(n: number, members: object): StoredItem {
  const id = `${n}`;
  return { id, madeUs: n, text: JSON.stringify({ ...members, id }) };
}

async function countOf(pages: AsyncIterable<readonly unknown[]>): Promise<number> {
  let count = 0;
  for await (const page of pages) count += page.length;
  return count;
}

test("a list has a most of items, and what it held is given back", async () => {
  const held = new HeldBytes(10_000_000);
  expect(await countOf(listed({ pages: pagesOf(APPCONTEXT_LIST_MAX_ITEMS), slices }, held))).toBe(20_000);
  const tooMany = countOf(listed({ pages: pagesOf(APPCONTEXT_LIST_MAX_ITEMS + 1), slices }, held));
  await expect(tooMany).rejects.toMatchObject({ details: { limit: "APPCONTEXT_LIST_MAX_ITEMS" } });
  const few = listed({ pages: pagesOf(100_000), slices, condition: ({ id }) => id.endsWith("000") }, held);
  expect(await countOf(few)).toBe(99);
  expect(held.of("matrix")).toBe(0);
});

test("all lists of a tenant hold so many bytes together, until who reads them is done or gone", async () => {
  const held = new HeldBytes(30_000);
  const members = { x: "x".repeat(192) };
  const first = listed({ pages: pagesOf(100, members), slices }, held)[Symbol.asyncIterator]();
  await first.next();
  expect(held.of("matrix")).toBeGreaterThan(20_000);
  const second = () => countOf(listed({ pages: pagesOf(100, members), slices }, held));
  await expect(second()).rejects.toMatchObject({ code: "limited" });
  const alone = countOf(listed({ pages: pagesOf(1_000, members), slices }, new HeldBytes(30_000)));
  const details = { limit: "APPCONTEXT_LISTS_MAX_BYTES" };
  await expect(alone).rejects.toMatchObject({ code: "too_large", details });
  const neighbour = new Slices({ tenant: "second", clock: new TestClock(), signal: undefined });
  expect(await countOf(listed({ pages: pagesOf(100, members), slices: neighbour }, held))).toBe(100);
  await first.return?.(undefined);
  expect(await second()).toBe(100);
  expect([held.of("matrix"), held.of("second")]).toEqual([0, 0]);
});

test("others work while a condition is worked out for many items", async () => {
  const clock = new TestClock();
  // Every read of the clock ends a slice.
  const slow = { ...shared(clock), monotonicMs: () => (clock.advance(SLICE_MAX_MS), clock.nowMs()) };
  const mine = new Slices({ tenant: "matrix", clock: slow, signal: undefined });
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await endOf({ pages: pagesOf(10_000), slices: mine, condition: () => false }, "last");
  isOver = true;
  expect(turns).toBeGreaterThan(10_000 / 100);
});

function shared(clock: TestClock) {
  return {
    nowMs: () => clock.nowMs(),
    after: (delayMs: number, callback: () => void) => clock.after(delayMs, callback),
  };
}

test("a list that nobody waits for any more ends", async () => {
  const gone = new Slices({ tenant: "matrix", clock: new TestClock(), signal: AbortSignal.abort() });
  const held = new HeldBytes(10_000_000);
  await expect(countOf(listed({ pages: pagesOf(100), slices: gone }, held))).rejects.toMatchObject({
    code: "cancelled",
  });
});
