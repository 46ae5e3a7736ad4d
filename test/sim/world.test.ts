import { randomBytes } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { World } from "./world.ts";

const turns = async (count: number): Promise<void> => {
  for (let left = count; left > 0; left--) await setImmediate();
};

/** Work that other threads do in this many pieces. */
async function threads(pieces: number): Promise<void> {
  for (let left = pieces; left > 0; left--) await promisify(randomBytes)(1);
}

/** Returns the order of events when another thread works in this many pieces. */
async function told(pieces: number): Promise<readonly string[]> {
  const world = new World({ seed: 1, startMs: 0, tracing: true });
  world.after(10, "begins", () => {
    void world.outside(threads(pieces)).then(() => world.note("the first thread is done"));
    void world.outside(threads(3)).then(() => world.note("the second thread is done"));
    void turns(7).then(() => world.note("who paused has gone on"));
  });
  world.after(10, "next", () => world.note("the next event"));
  await world.advance(20);
  return world.trace;
}

it.each([0, 1, 2, 5, 30])("the speed of other threads changes nothing: %i pieces", async (pieces) => {
  expect(await told(pieces)).toEqual([
    "0.010 who paused has gone on",
    "0.010 the first thread is done",
    "0.010 the second thread is done",
    "0.010 the next event",
  ]);
});

it("time that does not advance waits for other threads as well", async () => {
  const world = new World({ seed: 1, startMs: 0 });
  expect(await world.outside(threads(3).then(() => "done"))).toBe("done");
  await expect(world.outside(Promise.reject(new Error("broken")))).rejects.toThrow("broken");
});
