import { once } from "node:events";
import { constants, getPriority } from "node:os";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { lowerPriority, ownThread, threadProcessorMs } from "./processor.ts";

const WAITING = `
const { parentPort } = require("node:worker_threads");
parentPort.postMessage(Number(require("node:fs").readlinkSync("/proc/thread-self").split("/").at(-1)));
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`;

/** Goes on until this thread has used so much more of a processor. */
function work(ms: number): void {
  const untilMs = threadProcessorMs(ownThread()) + ms;
  while (threadProcessorMs(ownThread()) < untilMs);
}

test.runIf(process.platform === "linux")("the work of one thread is no time of another one", async () => {
  const worker = new Worker(WAITING, { eval: true });
  const [thread] = (await once(worker, "message")) as [number];
  const before = threadProcessorMs(thread);
  const wholeBefore = threadProcessorMs(undefined);
  work(300);
  expect(threadProcessorMs(thread) - before).toBeLessThan(100);
  expect(threadProcessorMs(undefined) - wholeBefore).toBeGreaterThan(200);
  await worker.terminate();
});

test.runIf(process.platform === "linux")("a lower priority is that of one thread", async () => {
  const worker = new Worker(WAITING, { eval: true });
  const [thread] = (await once(worker, "message")) as [number];
  const ownPriority = getPriority(ownThread());
  expect(lowerPriority(thread)).toBe(true);
  expect(getPriority(thread)).toBe(constants.priority.PRIORITY_BELOW_NORMAL);
  expect(getPriority(ownThread())).toBe(ownPriority);
  await worker.terminate();
  expect(lowerPriority(2 ** 30)).toBe(false);
});

test("a thread that is not known has the time of the process", () => {
  const least = process.cpuUsage();
  expect(threadProcessorMs(2 ** 31)).toBeGreaterThanOrEqual((least.user + least.system) / 1_000);
});
