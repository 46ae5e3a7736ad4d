import { expect, test } from "vitest";
import { CATALOG_FOLLOWERS_MAX } from "../../../../common/limits.ts";
import { TestClock } from "../../../../test/helpers/runtime.ts";
import { WriteClock } from "./writeclock.ts";

test("of all controllers of a tenant no two have the same time for an object, each is above what was read", () => {
  const clock = new TestClock();
  const readUs = clock.nowMs() * 1_000 + 77;
  const times = Array.from({ length: CATALOG_FOLLOWERS_MAX }, (_, number) =>
    new WriteClock(clock, () => number).nextUs(readUs),
  );
  expect(new Set(times).size).toBe(256);
  expect(Math.min(...times)).toBe(readUs + 1);
  expect(Math.max(...times)).toBe(readUs + CATALOG_FOLLOWERS_MAX);
});

test("a controller that writes many objects at once stays at its clock, however many controllers there are", () => {
  const clock = new TestClock();
  const times = new WriteClock(clock, () => 255);
  let latestUs = 0;
  for (let object = 0; object < 100_000; object++) latestUs = Math.max(latestUs, times.nextUs());
  expect(latestUs - clock.nowMs() * 1_000).toBeLessThan(CATALOG_FOLLOWERS_MAX);
});

test("the writes of one object rise, also when the clock was set back", () => {
  const clock = new TestClock();
  let nowMs = clock.nowMs();
  const times = new WriteClock({ ...clock, nowMs: () => nowMs } as TestClock, () => 3);
  const first = times.nextUs();
  nowMs -= 3_600_000;
  const second = times.nextUs(first);
  expect(second).toBe(first + CATALOG_FOLLOWERS_MAX);
});

test("a time that is given before its write is above those before it, and those behind it are above it", () => {
  const times = new WriteClock(new TestClock(), () => 3);
  const given = [times.nextUs(), times.presetUs(), times.presetUs(), times.nextUs(), times.presetUs()];
  expect(given).toEqual([...new Set(given)].sort((a, b) => a - b));
});
