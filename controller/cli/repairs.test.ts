import { expect, test } from "vitest";
import { repairRows } from "./repairs.ts";

const DAY_MS = 24 * 3_600_000;

test("tables that are due come first, each with when it was repaired", () => {
  const tables = [
    { table: "edges_in", repairedMs: Date.UTC(2026, 0, 2), everyMs: 3 * DAY_MS, due: false },
    { table: "present", everyMs: 7 * DAY_MS, due: true },
  ];
  expect(repairRows({ tables, due: true })).toEqual([
    { table: "present", repaired: "not within 30 days", every: "7 days", due: "due" },
    { table: "edges_in", repaired: Date.UTC(2026, 0, 2), every: "3 days", due: "" },
  ]);
});

test("where there is one copy of everything it says so", () => {
  expect(repairRows({ tables: [], due: false })).toBe("Everything lies on one node: there is nothing to repair.");
});
