import { expect, test } from "vitest";
import { SCRIPT_NATIVE_LOOKS } from "../../common/limits.ts";
import { TestClock } from "../../test/helpers/time/runtime.ts";
import { watchNative } from "./native.ts";

const MAX_MS = 1_000;
const LOOK_MS = MAX_MS / SCRIPT_NATIVE_LOOKS;
const THREAD = 4711;

function watched(pulse: number | undefined, processorMs?: (thread: number | undefined) => number) {
  const clock = new TestClock();
  const line = { pulse, thread: THREAD };
  const state = { over: 0 };
  const stop = watchNative({ clock, line, maxMs: MAX_MS, processorMs }, () => (state.over += 1));
  const look = async (times: number): Promise<number> => {
    for (let at = 0; at < times; at += 1) {
      clock.advance(LOOK_MS);
      await Promise.resolve();
    }
    return state.over;
  };
  return { clock, line, look, stop };
}

test("a run without a moment to stop it for the named time is over, once", async () => {
  const { look, clock } = watched(7);
  expect(await look(SCRIPT_NATIVE_LOOKS)).toBe(0);
  expect(await look(1)).toBe(1);
  expect(await look(2 * SCRIPT_NATIVE_LOOKS)).toBe(1);
  expect(clock.waiting).toBe(0);
});

test("only the time that its own thread has of a processor counts", async () => {
  const used = new Map<number | undefined, number>();
  const { look } = watched(7, (thread) => {
    const usedMs = (used.get(thread) ?? 0) + (thread === THREAD ? LOOK_MS / 8 : LOOK_MS);
    used.set(thread, usedMs);
    return usedMs;
  });
  expect(await look(8 * SCRIPT_NATIVE_LOOKS)).toBe(0);
  expect(await look(1)).toBe(1);
  expect([...used.keys()]).toEqual([THREAD]);
});

test("one look counts for no more than the time between two", async () => {
  let usedMs = 0;
  const { look } = watched(7, () => (usedMs += 10 * MAX_MS));
  expect(await look(SCRIPT_NATIVE_LOOKS)).toBe(0);
  expect(await look(1)).toBe(1);
});

test("a look that could only read the time of the process takes nothing away from those behind it", async () => {
  let looks = 0;
  const { look } = watched(7, () => (++looks === 2 ? 100 * MAX_MS : looks * LOOK_MS));
  expect(await look(SCRIPT_NATIVE_LOOKS + 1)).toBe(0);
  expect(await look(1)).toBe(1);
});

test("one such moment, and the time begins anew", async () => {
  const { line, look } = watched(7);
  await look(SCRIPT_NATIVE_LOOKS);
  line.pulse = 8;
  expect(await look(SCRIPT_NATIVE_LOOKS)).toBe(0);
});

test("a run that has not begun, or waits for an answer, is not over", async () => {
  const { look } = watched(undefined);
  expect(await look(3 * SCRIPT_NATIVE_LOOKS)).toBe(0);
});

test("a clock that leaps, as after a pause of the process, ends nothing by that", async () => {
  const { clock, look } = watched(7);
  await look(1);
  clock.advance(10 * MAX_MS);
  await Promise.resolve();
  expect(await look(SCRIPT_NATIVE_LOOKS - 2)).toBe(0);
});

test("a watch that ends looks no more", async () => {
  const { clock, look, stop } = watched(7);
  await look(SCRIPT_NATIVE_LOOKS);
  stop();
  expect(await look(2)).toBe(0);
  expect(clock.waiting).toBe(0);
});
