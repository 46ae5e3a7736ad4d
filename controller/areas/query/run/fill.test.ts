import { expect, test } from "vitest";
import { CalendarSteps } from "../../../../common/calendar/steps.ts";
import { UTC_ZONE } from "../../../../common/calendar/zones.ts";
import { QUERY_FILLED_ROWS_MAX } from "../../../../common/limits.ts";
import { filled } from "./fill.ts";

test("others get their turns while the beginnings of the steps are made, whose bytes are counted", () => {
  let taken = 0;
  const steps = new CalendarSteps({ count: 1, unit: "month" }, UTC_ZONE);
  const plan = {
    key: 0,
    steps,
    width: "1 month",
    fromMs: Date.UTC(2026, 0),
    toMs: Date.UTC(2034, 3),
    isAlone: true,
    value: 0,
  };
  const memory = { take: (bytes: number) => void (taken += bytes) };
  const rows = [...filled([], { plan, kinds: [], memory })];
  const first = rows.findIndex((row) => row !== undefined);
  expect(first).toBe(100);
  expect(rows.slice(first)).toHaveLength(100);
  expect(taken).toBe(100 * Float64Array.BYTES_PER_ELEMENT);
});

test("as many rows are made as the limit says, of all series together, and one more is refused", () => {
  const rowsOf = (count: number): number => {
    const steps = new CalendarSteps({ count: 1, unit: "second" }, UTC_ZONE);
    const range = { fromMs: 0, toMs: (count - 1) * 1_000 };
    const plan = { key: 0, steps, width: "1 second", ...range, isAlone: false, value: 0 };
    const groups = ["a", "b"].map((name) => ({ keys: [0, name], results: [] }));
    return [...filled(groups, { plan, kinds: [], memory: { take: () => {} } })].filter(Boolean).length;
  };
  expect(rowsOf(QUERY_FILLED_ROWS_MAX / 2)).toBe(QUERY_FILLED_ROWS_MAX);
  expect(() => rowsOf(QUERY_FILLED_ROWS_MAX / 2 + 1)).toThrow("FILL would answer more than");
});
