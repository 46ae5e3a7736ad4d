import { MessageChannel } from "node:worker_threads";
import { expect, test } from "vitest";
import { openCallLine } from "./calls.ts";

/** Resolves when every message sent before has been heard. */
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
