import { expect, test } from "vitest";
import { CalendarSteps } from "../../../../common/calendar/steps.ts";
import { UTC_ZONE } from "../../../../common/calendar/zones.ts";
import { filled } from "./fill.ts";

test("others get their turns while the beginnings of the steps are made", () => {
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
  const rows = [...filled([], { plan, kinds: [], memory: { take: () => {} } })];
  const first = rows.findIndex((row) => row !== undefined);
  expect(first).toBe(100);
  expect(rows.slice(first)).toHaveLength(100);
});
