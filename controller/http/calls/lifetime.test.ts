import { expect, test, vi } from "vitest";
import { openTestHttp } from "../../../test/helpers/http/http-app.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import { AppError } from "../../../common/errors.ts";
import { CallLifetime } from "./lifetime.ts";
import { OpenCalls } from "./open-calls.ts";

function opened(clock: TestClock, calls = new OpenCalls(clock)): CallLifetime {
  return new CallLifetime(clock, calls);
}

const GONE = new AppError("cancelled", "The client went away.");
const STOPS = new AppError("unavailable", "The controller stops.");
const never = new Promise<never>(() => undefined);

test("the first reason to end stands, whenever the work begins", async () => {
  const lifetime = opened(new TestClock());
  const before = lifetime.until(never);
  lifetime.end(GONE);
  lifetime.end(STOPS);
  await expect(before).rejects.toBe(GONE);
  await expect(lifetime.until(never)).rejects.toBe(GONE);
  expect([lifetime.isOver, lifetime.signal.reason]).toEqual([true, GONE]);
});

test("a deadline takes the place of the one before, until it is taken back", async () => {
  const clock = new TestClock();
  const lifetime = opened(clock);
  lifetime.setDeadline(1_000);
  lifetime.setDeadline(3_000);
  clock.advance(2_000);
  expect([lifetime.isOver, lifetime.deadlineMs]).toEqual([false, 3_000]);
  clock.advance(1_000);
  await expect(lifetime.until(never)).rejects.toMatchObject({ code: "deadline", message: "Not done within 3000 ms." });
  const other = opened(clock);
  other.setDeadline(1_000);
  other.cancelDeadline();
  clock.advance(1_000);
  expect(other.isOver).toBe(false);
});

test("one timer serves the deadlines of all calls, each at its time", () => {
  const clock = new TestClock();
  let timers = 0;
  const counted = { ...sharedClock(clock), after: (ms: number, then: () => void) => (timers++, clock.after(ms, then)) };
  const calls = new OpenCalls(counted);
  const made = Array.from({ length: 1_000 }, (_, at) => {
    const lifetime = new CallLifetime(counted, calls);
    lifetime.setDeadline(30_000);
    lifetime.setDeadline(at === 500 ? 1_000 : 60_000);
    clock.advance(1);
    if (at % 2 === 1) lifetime.leave();
    return lifetime;
  });
  expect(timers).toBeLessThan(10);
  const over = () => made.flatMap((lifetime, at) => (lifetime.isOver ? [at] : []));
  clock.advance(499);
  expect(over()).toEqual([]);
  clock.advance(1);
  expect(over()).toEqual([500]);
  clock.advance(60_000 - 1_500);
  expect(over()).toEqual([0, 500]);
  clock.advance(1_000);
  expect(over()).toEqual(made.flatMap((_, at) => (at % 2 === 0 ? [at] : [])));
  const later = new CallLifetime(counted, calls);
  later.setDeadline(5);
  clock.advance(5);
  expect(later.isOver).toBe(true);
});

function sharedClock(clock: TestClock) {
  return { nowMs: () => clock.nowMs(), monotonicMs: () => clock.monotonicMs() };
}

test("every call that is entered leaves, also one whose query, session or body cannot be read", async () => {
  await using http = await openTestHttp();
  const session = await http.signIn("admin");
  const [enter, leave] = [vi.spyOn(OpenCalls.prototype, "enter"), vi.spyOn(OpenCalls.prototype, "leave")];
  for (const query of ["a=%zz", "a=%ff", "&a".repeat(100_000), "sessionid=x", `sessionid=${session}`, ""]) {
    await http.app.inject({ url: `/admin/users?${query}` });
    await http.app.inject({ method: "POST", url: `/admin/users/new?${query}`, payload: "{" });
  }
  const [entered, left] = [enter, leave].map((spy) => spy.mock.calls.map(([call]) => call));
  vi.restoreAllMocks();
  expect(entered?.length).toBeGreaterThan(5);
  expect(new Set(left)).toEqual(new Set(entered));
});
