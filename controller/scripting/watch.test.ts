import { expect, test } from "vitest";
import { SCRIPT_LONG_RUN_MS, SCRIPT_LOOK_MS } from "../../common/limits.ts";
import { TestClock } from "../../test/helpers/time/runtime.ts";
import { watchRun } from "./watch.ts";

const NATIVE_LOOKS = 5;
const NATIVE_MAX_MS = NATIVE_LOOKS * SCRIPT_LOOK_MS;
const LONG_LOOKS = SCRIPT_LONG_RUN_MS / SCRIPT_LOOK_MS;
const THREAD = 4711;

function watched(pulse: number | undefined, processorMs?: (thread: number | undefined) => number) {
  const clock = new TestClock();
  const line: { pulse: number | undefined; thread: number | undefined } = { pulse, thread: THREAD };
  const calls = { native: 0, long: [] as number[] };
  const stop = watchRun({
    clock,
    line,
    nativeMaxMs: NATIVE_MAX_MS,
    processorMs,
    onNative: () => (calls.native += 1),
    onLong: (thread) => calls.long.push(thread),
  });
  const look = async (times: number): Promise<number> => {
    for (let at = 0; at < times; at += 1) {
      clock.advance(SCRIPT_LOOK_MS);
      await Promise.resolve();
    }
    return calls.native;
  };
  return { clock, line, look, stop, calls };
}

test("a run without a moment to stop it for the named time is over, once", async () => {
  const { look, clock } = watched(7);
  expect(await look(NATIVE_LOOKS)).toBe(0);
  expect(await look(1)).toBe(1);
  expect(await look(2 * NATIVE_LOOKS)).toBe(1);
  expect(clock.waiting).toBe(0);
});

test("only the time that its own thread has of a processor counts", async () => {
  const used = new Map<number | undefined, number>();
  const { look, calls } = watched(7, (thread) => {
    const usedMs = (used.get(thread) ?? 0) + (thread === THREAD ? SCRIPT_LOOK_MS / 8 : SCRIPT_LOOK_MS);
    used.set(thread, usedMs);
    return usedMs;
  });
  expect(await look(8 * LONG_LOOKS)).toBe(0);
  expect(calls.long).toEqual([]);
  expect(await look(8 * (NATIVE_LOOKS - LONG_LOOKS))).toBe(0);
  expect(await look(1)).toBe(1);
  expect([...used.keys()]).toEqual([THREAD]);
});

test("one look counts for no more than the time between two", async () => {
  let usedMs = 0;
  const { look } = watched(7, () => (usedMs += 10 * NATIVE_MAX_MS));
  expect(await look(NATIVE_LOOKS)).toBe(0);
  expect(await look(1)).toBe(1);
});

test("a look that could only read the time of the process takes nothing away from those behind it", async () => {
  let looks = 0;
  const { look } = watched(7, () => (++looks === 2 ? 100 * NATIVE_MAX_MS : looks * SCRIPT_LOOK_MS));
  expect(await look(NATIVE_LOOKS + 1)).toBe(0);
  expect(await look(1)).toBe(1);
});

test("one such moment, and the time begins anew", async () => {
  const { line, look } = watched(7);
  await look(NATIVE_LOOKS);
  line.pulse = 8;
  expect(await look(NATIVE_LOOKS)).toBe(0);
});

test("a run that has not begun, or waits for an answer, is not over", async () => {
  const { look } = watched(undefined);
  expect(await look(3 * NATIVE_LOOKS)).toBe(0);
});

test("a clock that leaps, as after a pause of the process, ends nothing by that", async () => {
  const { clock, look } = watched(7);
  await look(1);
  clock.advance(10 * NATIVE_MAX_MS);
  await Promise.resolve();
  expect(await look(NATIVE_LOOKS - 2)).toBe(0);
});

test("a run that has used the processor for the named time is long, once, also if it can be stopped", async () => {
  const { line, look, calls } = watched(7);
  for (let at = 0; at < LONG_LOOKS; at++) {
    await look(1);
    line.pulse = at;
  }
  expect(calls.long).toEqual([]);
  await look(1);
  expect(calls.long).toEqual([THREAD]);
  await look(LONG_LOOKS);
  expect(calls.long).toEqual([THREAD]);
});

test("earlier runs of its thread, and time before it has a thread, make no run long", async () => {
  const { line, look, calls } = watched(undefined, (thread) =>
    thread === undefined ? ++processMs * 1_000 : 1_000_000,
  );
  let processMs = 0;
  line.thread = undefined;
  await look(2 * LONG_LOOKS);
  line.thread = THREAD;
  await look(2 * LONG_LOOKS);
  expect(calls.long).toEqual([]);
});

test("a watch that ends looks no more", async () => {
  const { clock, look, stop } = watched(7);
  await look(NATIVE_LOOKS);
  stop();
  expect(await look(2)).toBe(0);
  expect(clock.waiting).toBe(0);
});
