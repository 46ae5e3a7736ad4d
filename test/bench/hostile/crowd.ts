import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { quantile, type Figure } from "../driver/frame.ts";
import { preparedCall, ROUTE_CLASSES, send, type PreparedCall } from "./routes.ts";
import { anonymousMb } from "../driver/process.ts";
import type { ProbedController } from "./turn-probe.ts";

const CALLS_AT_ONCE = 100;
const P99_GOAL_MS = 250;
/** Twice the memory for bodies of all calls (`body_memory_mib`); the rest is garbage not collected yet. */
const MEMORY_GOAL_MB = 2_048;
const SAMPLE_MS = 10;
/** Callers close their connections after this time, so the bench does not wait for calls that take minutes. */
const PATIENCE_MS = 30_000;

/** A thread that calls one address repeatedly, and returns the duration of each call in ms. */
const PROBING = `
const { parentPort, workerData } = require("node:worker_threads");
let isOver = false;
parentPort.once("message", () => (isOver = true));
(async () => {
  const times = [];
  while (!isOver) {
    const began = performance.now();
    await (await fetch(workerData)).arrayBuffer();
    times.push(performance.now() - began);
  }
  parentPort.postMessage(times);
})();`;

/**
 * Duration of a health check of the controller while a hundred hostile calls of all classes are in progress, and the
 * memory of its process.
 */
export async function crowdFigures(controller: ProbedController): Promise<readonly Figure[]> {
  const calls = await prepared(controller);
  const prober = new Worker(PROBING, { eval: true, workerData: `${controller.odp.url}/healthz` });
  await once(prober, "online");
  const memory = peakMemory(controller.odp.controller.pid);
  const codes = await Promise.all(calls.map(send));
  const probed = once(prober, "message") as Promise<[readonly number[]]>;
  prober.postMessage("over");
  const [times] = await probed;
  await prober.terminate();
  const told = [...new Set(codes)].map((code) => `${codes.filter((one) => one === code).length} ${code}`).join(", ");
  const beside = `beside ${calls.length} hostile calls at once`;
  const goal = { againstName: "the goal", kind: "most", goal: 1 } as const;
  return [
    {
      name: `p99 of ${times.length} /healthz ${beside} (${told})`,
      unit: "ms",
      ours: quantile(times, 0.99),
      against: P99_GOAL_MS,
      ...goal,
    },
    { name: `memory of the process ${beside}`, unit: "MB", ours: memory.end(), against: MEMORY_GOAL_MB, ...goal },
  ];
}

/**
 * Making the bodies takes longer than the controller keeps an idle connection. Without turns of the event loop in
 * between, a connection closed meanwhile would still look open, and a body that calls the controller would fail.
 */
async function prepared(controller: ProbedController): Promise<readonly PreparedCall[]> {
  const calls: PreparedCall[] = [];
  for (const call of crowd()) {
    // Data and closes that arrived are handled between the two turns.
    await setImmediate();
    await setImmediate();
    calls.push(await preparedCall(controller, call, true));
  }
  return calls;
}

/** Calls of all classes in turns: the first of each class, then the second, and so on. */
function crowd() {
  const all = ROUTE_CLASSES.flatMap(({ calls }) => calls.map((call, at) => ({ call, at }))).toSorted(
    (a, b) => a.at - b.at,
  );
  return all.slice(0, CALLS_AT_ONCE).map(({ call }) => ({ patienceMs: PATIENCE_MS, ...call }));
}

/** Without the mapped pages of the store, which the calls before have filled: the system takes them back. */
function peakMemory(pid: number): { readonly end: () => number } {
  let most = 0;
  const look = (): void => void (most = Math.max(most, anonymousMb(pid)));
  const timer = setInterval(look, SAMPLE_MS);
  return {
    end() {
      clearInterval(timer);
      look();
      return most;
    },
  };
}
