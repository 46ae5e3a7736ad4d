import { expect, test } from "vitest";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import { AppError } from "../../../common/errors.ts";
import { CallLifetime } from "./lifetime.ts";

const GONE = new AppError("cancelled", "The client went away.");
const STOPS = new AppError("unavailable", "The controller stops.");
const never = new Promise<never>(() => undefined);

test("the first reason to end stands, whenever the work begins", async () => {
  const lifetime = new CallLifetime(new TestClock());
  const before = lifetime.until(never);
  lifetime.end(GONE);
  lifetime.end(STOPS);
  await expect(before).rejects.toBe(GONE);
  await expect(lifetime.until(never)).rejects.toBe(GONE);
  expect([lifetime.isOver, lifetime.signal.reason]).toEqual([true, GONE]);
});

test("a deadline takes the place of the one before, until it is taken back", async () => {
  const clock = new TestClock();
  const lifetime = new CallLifetime(clock);
  lifetime.setDeadline(1_000);
  lifetime.setDeadline(3_000);
  clock.advance(2_000);
  expect([lifetime.isOver, lifetime.deadlineMs]).toEqual([false, 3_000]);
  clock.advance(1_000);
  await expect(lifetime.until(never)).rejects.toMatchObject({ code: "deadline", message: "Not done within 3000 ms." });
  const other = new CallLifetime(clock);
  other.setDeadline(1_000);
  other.cancelDeadline();
  clock.advance(1_000);
  expect(other.isOver).toBe(false);
});
