import { expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { wait, type Clock } from "../../../common/time.ts";
import type { Look } from "./conditions.ts";
import { waitFor } from "./wait.ts";
import { lengthMs } from "../../../common/text/length-of-time.ts";

/** A clock whose time passes while something waits. */
class PassingClock implements Clock {
  #nowMs = 0;
  readonly pausesMs: number[] = [];
  readonly #timers = new Set<{ readonly atMs: number; readonly callback: () => void }>();

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, callback };
    this.#timers.add(timer);
    if (this.#timers.size > 1) {
      this.pausesMs.push(delayMs);
      queueMicrotask(() => this.#pass());
    }
    return () => this.#timers.delete(timer);
  }

  #pass(): void {
    const [next] = [...this.#timers].toSorted((one, other) => one.atMs - other.atMs);
    if (next === undefined) return;
    this.#nowMs = next.atMs;
    this.#timers.delete(next);
    next.callback();
  }
}

async function waiting(looks: readonly (Look | Error)[], timeoutMs = 60_000, signal = new AbortController().signal) {
  const clock = new PassingClock();
  const notes: string[] = [];
  let at = 0;
  const look = (): Promise<Look> => {
    const seen = looks[Math.min(at++, looks.length - 1)];
    return seen instanceof Error || seen === undefined ? Promise.reject(seen) : Promise.resolve(seen);
  };
  const waited = await waitFor({ look, timeoutMs, clock, signal, note: (text) => notes.push(text) });
  return { ...waited, notes, pausesMs: clock.pausesMs, nowMs: clock.nowMs() };
}

const NOT_YET: Look = { isReached: false, text: "web-1 is offline" };

test("looks until the state is reached, less often while nothing changes", async () => {
  const looks = [NOT_YET, NOT_YET, NOT_YET, NOT_YET, { ...NOT_YET, text: "new" }, { isReached: true, text: "" }];
  expect(await waiting(looks)).toMatchObject({ end: "reached", pausesMs: [1_000, 2_000, 4_000, 8_000, 1_000] });
});

test("ends when the time is over, and tells the last state", async () => {
  expect(await waiting([NOT_YET])).toMatchObject({ end: "timeout", text: "web-1 is offline", nowMs: 60_000 });
});

test("ends at once when the state can no longer be reached, or a signal fires", async () => {
  expect(await waiting([NOT_YET, { ...NOT_YET, isLost: true }])).toMatchObject({ end: "lost", nowMs: 1_000 });
  expect(await waiting([NOT_YET], 1, AbortSignal.abort())).toMatchObject({ end: "cancelled", nowMs: 0 });
});

test("a controller that is not reached is told once and asked again; another failure ends the wait", async () => {
  const gone = new AppError("unavailable", "No controller answers.");
  const seen = await waiting([gone, gone, NOT_YET, { isReached: true, text: "" }]);
  expect(seen).toMatchObject({ end: "reached", notes: ["No controller answers. Trying again."] });
  await expect(waiting([new AppError("denied", "No.")])).rejects.toMatchObject({ code: "denied" });
});

test("the signal of a look fires when the time is over", async () => {
  const clock = new PassingClock();
  const look = async (signal: AbortSignal): Promise<Look> => {
    await wait(clock, 3_600_000, signal);
    throw new AppError("cancelled", "");
  };
  const signal = new AbortController().signal;
  expect(await waitFor({ look, timeoutMs: 5_000, clock, signal, note: () => undefined })).toMatchObject({
    end: "timeout",
  });
});

test.each([
  ["90", 90_000],
  ["90s", 90_000],
  ["5m", 300_000],
  ["2h", 7_200_000],
  ["1d", 86_400_000],
  ["", undefined],
  ["-1s", undefined],
  ["1.5h", undefined],
  ["5 m", undefined],
  ["5min", undefined],
])("the time %s has %s ms", (text, ms) => {
  expect(lengthMs(text)).toBe(ms);
});
