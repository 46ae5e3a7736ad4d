import { setImmediate } from "node:timers";
import { expect, test } from "vitest";
import { SLICE_LONG_MS, SLICE_MAX_MS } from "../../common/limits.ts";
import { TestClock } from "../../test/helpers/time/runtime.ts";
import { ThreadSlices } from "./slices.ts";

/** Turns of the event loop during the pause after a slice of `sliceMs`. */
async function turnsAfter(sliceMs: number): Promise<number> {
  const clock = new TestClock();
  const slices = new ThreadSlices({ tenant: "matrix", clock, signal: undefined });
  slices.isOverNow();
  clock.advance(sliceMs);
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await slices.pause();
  isOver = true;
  return turns;
}

test("after a long slice others have a turn more, as two long steps would else be one turn", async () => {
  expect(await turnsAfter(SLICE_MAX_MS)).toBe(1);
  expect(await turnsAfter(SLICE_LONG_MS)).toBe(2);
});
