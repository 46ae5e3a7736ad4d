import { MessageChannel } from "node:worker_threads";
import { expect, test } from "vitest";
import { CallEnd, openCallLine } from "./calls.ts";
import { ownThread } from "./processor.ts";

/** Resolves when all messages sent before have been received. */
async function heard(): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  await new Promise((resolve) => {
    port1.once("message", resolve);
    port2.postMessage(undefined);
  });
  port1.close();
}

test.each(["stop", "close"] as const)("a call that is on its way at %s is not made", async (end) => {
  const made: string[] = [];
  const line = openCallLine(({ name }) => (made.push(name), Promise.resolve("")));
  line.port.postMessage({ name: "before", args: "[]" });
  await heard();
  line.port.postMessage({ name: "after", args: "[]" });
  line[end]();
  await heard();
  expect(made).toEqual(["before"]);
  line.close();
});

test("a pulse counts moments at which a task could be stopped, while such are to be expected", () => {
  const line = openCallLine(() => Promise.resolve(""));
  const end = new CallEnd(line);
  expect(line.pulse).toBeUndefined();
  end.within(() => {
    const before = line.pulse ?? expect.fail("It has no pulse.");
    expect(line.pulse).toBe(before);
    expect(end.stopped).toBe(false);
    expect(line.pulse).toBe(before + 1);
  });
  expect(line.pulse).toBeUndefined();
  expect(() => end.within(() => expect.fail("so"))).toThrow("so");
  expect(line.pulse).toBeUndefined();
  line.close();
});

test("a line knows the thread of its task from then on", () => {
  const line = openCallLine(() => Promise.resolve(""));
  expect(line.thread).toBeUndefined();
  new CallEnd(line);
  expect(line.thread).toBe(ownThread());
  line.close();
});

test("a task that had an answer goes on with another pulse", () => {
  const line = openCallLine(() => Promise.resolve(""));
  const end = new CallEnd(line);
  const pulses = end.within(() => {
    const before = line.pulse;
    line.stop();
    expect(end.call({ name: "a", args: "[]" })).toBeUndefined();
    return [before, line.pulse];
  });
  expect(pulses[1]).toBeGreaterThan(pulses[0] ?? Number.POSITIVE_INFINITY);
  line.close();
});
