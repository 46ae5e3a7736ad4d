import { expect, test } from "vitest";
import { SCHEDULE_LATE_MS } from "../../../../common/limits.ts";
import { parseSchedule } from "../../../../common/schedule/index.ts";
import { dueOf } from "./due.ts";

const START_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;
const due = (text: string, nowMs: number, afterMs = START_MS) =>
  dueOf(parseSchedule(text, "UTC")!, { name: "a@b", afterMs, nowMs });

test("a time is waited for until it comes, and not missed while it is less late than the bound", () => {
  expect(due("every 1h", START_MS + 1)).toEqual({ kind: "wait", atMs: START_MS + HOUR_MS });
  for (const missed of ["skip", "last", "all"])
    for (const lateMs of [0, SCHEDULE_LATE_MS])
      expect(due(`every 1h;missed=${missed}`, START_MS + HOUR_MS + lateMs)).toEqual({
        kind: "run",
        dueMs: START_MS + HOUR_MS,
      });
  expect(due("at 2025-01-01", START_MS)).toEqual({ kind: "wait" });
});

test("of several that are less late than the bound each comes", () => {
  const nowMs = START_MS + SCHEDULE_LATE_MS;
  expect(due("every 10s", nowMs)).toEqual({ kind: "run", dueMs: START_MS + 10_000 });
});

test("after an outage missed decides", () => {
  const nowMs = START_MS + 5 * HOUR_MS + SCHEDULE_LATE_MS + 1;
  const [first, last] = [START_MS + HOUR_MS, START_MS + 5 * HOUR_MS];
  expect(due("every 1h;missed=all", nowMs)).toEqual({ kind: "run", dueMs: first });
  expect(due("every 1h;missed=last", nowMs)).toEqual({ kind: "run", dueMs: last, missedFromMs: first });
  expect(due("every 1h;missed=skip", nowMs)).toEqual({ kind: "skip", missedFromMs: first, untilMs: last });
  expect(due("every 1h;missed=skip", last + 1), "what is not late is no missed one").toEqual({
    kind: "skip",
    missedFromMs: first,
    untilMs: last - HOUR_MS,
  });
  expect(due("every 1h;missed=last", first + SCHEDULE_LATE_MS + 1)).toEqual({ kind: "run", dueMs: first });
});

test("jitter moves the moment, not the time", () => {
  const waits = due("every 1h;jitter=30m", START_MS + 1);
  const atMs = waits.kind === "wait" ? (waits.atMs ?? 0) : 0;
  expect(atMs).toBeGreaterThanOrEqual(START_MS + HOUR_MS);
  expect(atMs).toBeLessThan(START_MS + 1.5 * HOUR_MS);
  expect(due("every 1h;jitter=30m", atMs - 1)).toEqual(waits);
  expect(due("every 1h;jitter=30m", atMs)).toEqual({ kind: "run", dueMs: START_MS + HOUR_MS });
});
