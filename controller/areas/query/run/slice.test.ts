import { expect, test, vi } from "vitest";
import { CALLS_BEGUN_PER_TURN, QUERY_ROW_LOOKED_CHARACTERS_MAX, SLICE_MAX_MS } from "../../../../common/limits.ts";
import { TestClock, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { parseConditionText } from "../../../../common/mql/index.ts";
import type { Row } from "../../../../common/value.ts";
import { STEPPINGS, steppedBy } from "../expressions/functions/calendar-steps.ts";
import { TEXT } from "../expressions/kind.ts";
import { compilePredicate } from "../expressions/predicate.ts";
import { THREAD_TEXT_WORK } from "../expressions/functions/textwork.ts";
import { paged } from "./pages.ts";
import { Slices } from "./slice.ts";

const { clock } = testRuntime();

test("a tenant with one query is not held up by all the queries of another", async () => {
  const order: string[] = [];
  const query = async (tenant: string, name: string) => {
    await new Slices({ tenant, clock, signal: undefined }).pause();
    order.push(name);
  };
  const queries = Array.from({ length: 50 }, (_, at) => query("crowd", `crowd ${at}`));
  queries.push(query("single", "single"));
  await Promise.all(queries);
  expect(order).toHaveLength(51);
  expect(order.indexOf("single")).toBeLessThan(2 * CALLS_BEGUN_PER_TURN);
});

test("between two slices the event loop turns", async () => {
  let turns = 0;
  let over = false;
  const count = (): void => {
    turns += 1;
    if (!over) setImmediate(count);
  };
  setImmediate(count);
  const heard = await Promise.all(
    Array.from({ length: 10 }, async () => {
      await new Slices({ tenant: "crowd", clock, signal: undefined }).pause();
      return turns;
    }),
  );
  over = true;
  expect(new Set(heard).size).toBeGreaterThanOrEqual(10 / CALLS_BEGUN_PER_TURN);
});

test("a query that nobody waits for any more ends at its next pause", async () => {
  const slices = new Slices({ tenant: "crowd", clock, signal: AbortSignal.abort() });
  await expect(slices.pause()).rejects.toMatchObject({ code: "cancelled" });
});

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("work ends a slice, the wait for the store does not", async () => {
  const time = new TestClock();
  const slices = new Slices({ tenant: "crowd", clock: time, signal: undefined });
  time.advance(SLICE_MAX_MS);
  expect(slices.isOverNow()).toBe(true);
  await turn();
  expect(slices.isOverNow()).toBe(false);
  time.advance(SLICE_MAX_MS);
  expect(slices.isOverNow()).toBe(true);
});

test("queries whose answers come in one turn of the loop share a slice", async () => {
  const time = new TestClock();
  const queries = Array.from({ length: 5 }, () => new Slices({ tenant: "crowd", clock: time, signal: undefined }));
  await turn();
  const areOver = queries.map((slices) => {
    const isOver = slices.isOverNow();
    time.advance(SLICE_MAX_MS / 2);
    return isOver;
  });
  expect(areOver).toEqual([false, false, true, true, true]);
  await turn();
  expect(queries.map((slices) => slices.isOverNow())).toEqual([false, false, false, false, false]);
});

test("a calendar in a zone whose years are not known yet makes a look at the clock due sooner", () => {
  const looks = (at: (row: number) => number): number => {
    const slices = new Slices({ tenant: "crowd", clock: new TestClock(), signal: undefined });
    const isOver = vi.spyOn(slices, "isOverNow");
    const step = steppedBy(STEPPINGS.bucket, [undefined, "1 day", "Asia/Qatar"], undefined);
    for (let row = 0; row < 128; row += 1) {
      step([at(row), "1 day", "Asia/Qatar"]);
      slices.isOver();
    }
    return isOver.mock.calls.length;
  };
  const scattered = (row: number): number => Date.UTC(1850 + row, 5, 1);
  expect(looks(scattered)).toBeGreaterThan(3);
  // All these are kept now.
  expect(looks(scattered)).toBe(2);
});

test("long texts that functions read make a look at the clock due sooner", () => {
  const time = new TestClock();
  const looks = (value: string): number => {
    const slices = new Slices({ tenant: "crowd", clock: time, signal: undefined });
    time.advance(SLICE_MAX_MS);
    for (let rows = 1; ; rows += 1) {
      THREAD_TEXT_WORK.charge({}, value);
      if (slices.isOver()) return rows;
    }
  };
  expect(looks("x")).toBeGreaterThan(50);
  expect(looks("x".repeat(120_000))).toBeLessThan(4);
  expect(looks("x".repeat(1_000_000))).toBe(1);
});

test.each(["msg like '*nothing*'", "msg contains 'nothing'", "msg match 'nothing'"])(
  "long texts that %s looks through make a look at the clock due sooner",
  (text) => {
    const time = new TestClock();
    const asked = compilePredicate<string>(parseConditionText(text), {
      values: [],
      resolve: () => ({ label: "msg", kinds: [TEXT], kind: () => TEXT, read: (row) => row }),
    });
    const looks = (value: string): number => {
      const slices = new Slices({ tenant: "crowd", clock: time, signal: undefined });
      time.advance(SLICE_MAX_MS);
      for (let rows = 1; ; rows += 1) {
        expect(asked(value)).toBe(false);
        if (slices.isOver()) return rows;
      }
    };
    expect(looks("x")).toBeGreaterThan(50);
    expect(looks("x".repeat(120_000))).toBeLessThan(4);
    THREAD_TEXT_WORK.take();
  },
);

test.each([
  ["like '*nothing*'", 1],
  ["contains 'nothing'", 1],
  ["match 'nothing'", 1],
  ["phrase 'no thing'", 20],
  ["fuzzy 'nothing'", 20],
])("within one row %s looks through a bounded number of characters, counted %i times", (question, effort) => {
  const asked = (times: number): ((row: string) => unknown) =>
    compilePredicate<string>(parseConditionText(Array.from({ length: times }, () => `msg ${question}`).join(" or ")), {
      values: [],
      resolve: () => ({ label: "msg", kinds: [TEXT], kind: () => TEXT, read: (row) => row }),
    });
  const most = Math.floor(QUERY_ROW_LOOKED_CHARACTERS_MAX / effort);
  const short = "x".repeat(Math.floor(most / 4));
  expect(asked(4)(short)).toBe(false);
  THREAD_TEXT_WORK.take();
  expect(() => asked(5)(short)).toThrow(/QUERY_ROW_LOOKED|look through more than/);
  THREAD_TEXT_WORK.take();
  // One question about a text of any length was always answered.
  expect(asked(1)("x".repeat(most + 1))).toBe(false);
  THREAD_TEXT_WORK.take();
});

test("between two rows that are made there is a pause, also where they make no row of the answer", async () => {
  const time = new TestClock();
  const slices = new Slices({ tenant: "crowd", clock: time, signal: undefined });
  const turns: number[] = [];
  let turn = 0;
  const made = function* (): Iterable<Row | undefined> {
    for (let at = 0; at < 3; at += 1) {
      turns.push(turn);
      setImmediate(() => (turn += 1));
      THREAD_TEXT_WORK.charge({}, "x".repeat(1_000_000));
      time.advance(SLICE_MAX_MS);
      yield at === 1 ? { at } : undefined;
    }
  };
  const pages: (readonly Row[])[] = [];
  for await (const page of paged(made(), slices)) pages.push(page);
  expect(pages).toEqual([[{ at: 1 }]]);
  expect(turns).toEqual([0, 1, 2]);
});
