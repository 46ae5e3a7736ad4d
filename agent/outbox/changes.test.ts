import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { Changes } from "./changes.ts";

it("a wait ends with the next change, at once when there was one, and when it is told to stop", async () => {
  const changes = new Changes();
  const stop = new AbortController();
  let ended = 0;
  const wait = (since: number) => changes.after(since, stop.signal).then(() => (ended += 1));
  const waits = [wait(0), wait(0)];
  await Promise.resolve();
  expect(ended).toBe(0);
  changes.note();
  await Promise.all([...waits, wait(0)]);
  const stopped = wait(1);
  stop.abort();
  await Promise.all([stopped, wait(1)]);
  expect([ended, changes.version]).toEqual([5, 1]);
});

it("a wait that ended leaves nothing at the signal, which may live as long as the agent", async () => {
  const changes = new Changes();
  const { signal } = new AbortController();
  const wait = changes.after(0, signal);
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  changes.note();
  await wait;
  expect(getEventListeners(signal, "abort")).toEqual([]);
});
