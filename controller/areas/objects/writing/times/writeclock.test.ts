import { expect, test } from "vitest";
import { CATALOG_FOLLOWERS_MAX, WRITE_AHEAD_OBJECTS_MAX } from "../../../../../common/limits.ts";
import { TestClock } from "../../../../../test/helpers/time/runtime.ts";
import { WriteClock } from "./writeclock.ts";

test("of all controllers of a tenant no two have the same time for an object, each is above what was read", () => {
  const clock = new TestClock();
  const readUs = clock.nowMs() * 1_000 + 77;
  const times = Array.from({ length: CATALOG_FOLLOWERS_MAX }, (_, number) => {
    const times = new WriteClock(clock, () => number);
    return times.ofObject(["1:a"], readUs, times.nextUs());
  });
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

test("the writes of one object rise, also when the clock was set back, and those of others follow the clock", () => {
  const clock = new TestClock();
  let nowMs = clock.nowMs();
  const times = new WriteClock({ ...clock, nowMs: () => nowMs } as TestClock, () => 3);
  const first = times.nextUs();
  nowMs -= 3_600_000;
  const second = times.ofObject(["1:a"], first, times.nextUs());
  expect(second).toBe(first + CATALOG_FOLLOWERS_MAX);
  const [next, preset] = [times.nextUs(), times.presetUs()];
  expect(preset).toBe(next + CATALOG_FOLLOWERS_MAX);
  expect(preset).toBeLessThan(nowMs * 1_000 + 3 * CATALOG_FOLLOWERS_MAX);
});

test("a time that is given before its write is above those before it, and those behind it are above it", () => {
  const times = new WriteClock(new TestClock(), () => 3);
  const given = [times.nextUs(), times.presetUs(), times.presetUs(), times.nextUs(), times.presetUs()];
  expect(given).toEqual([...new Set(given)].sort((a, b) => a - b));
});

test("an object ahead of the clock is written just above its own time, and moves no other however often it is written", () => {
  const clock = new TestClock();
  const times = new WriteClock(clock, () => 3);
  const futureUs = (clock.nowMs() + 4 * 365 * 86_400_000) * 1_000;
  let lastUs = futureUs;
  const wrong: number[] = [];
  for (let writes = 0; writes < 10_000; writes += 1) {
    const commonUs = writes % 2 === 0 ? times.nextUs() : times.presetUs();
    const timeUs = times.ofObject(["1:future"], lastUs, commonUs);
    if (timeUs <= lastUs || times.ofObject(["1:other"], commonUs - 1, commonUs) !== commonUs) wrong.push(timeUs);
    lastUs = timeUs;
  }
  expect(wrong).toEqual([]);
  expect(lastUs - futureUs).toBeLessThanOrEqual(10_000 * CATALOG_FOLLOWERS_MAX);
  // A preset time differs from all others, those of other objects included.
  expect(times.nextUs() - clock.nowMs() * 1_000).toBeLessThanOrEqual(10_001 * CATALOG_FOLLOWERS_MAX);
});

test("no two times of one object ahead of the clock are equal, also where none of them is written yet and more such objects are written than are kept in mind", () => {
  const clock = new TestClock();
  const times = new WriteClock(clock, () => 3);
  const futureUs = (clock.nowMs() + 86_400_000) * 1_000;
  const preset = (name: string): number => times.ofObject([name], futureUs, times.presetUs());
  const given = [preset("1:a"), preset("1:a")];
  for (let other = 0; other <= WRITE_AHEAD_OBJECTS_MAX; other += 1) preset(`2:${other}`);
  given.push(preset("1:a"), times.ofObject(["1:a"], futureUs, times.nextUs()));
  expect(given).toEqual([...new Set(given)].sort((a, b) => a - b));
  expect((given.at(-1) ?? 0) - futureUs).toBeLessThan(10 * CATALOG_FOLLOWERS_MAX);
});

test("an object of the year 9999 is written above its own time too", () => {
  const times = new WriteClock(new TestClock(), () => 3);
  let lastUs = Date.UTC(9999, 11, 31) * 1_000;
  for (let writes = 0; writes < 1_000; writes += 1) {
    const timeUs = times.ofObject(["1:last"], lastUs, times.nextUs());
    expect(timeUs).toBeGreaterThan(lastUs);
    lastUs = timeUs;
  }
});
