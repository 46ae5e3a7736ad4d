import { setTimeout as pause } from "node:timers/promises";
import { Installation } from "../../e2e/installation.ts";
import { median, type Bench } from "../driver/frame.ts";
import { cpuSeconds, residentMb } from "../driver/process.ts";

const STARTS = 5;
const SETTLE_MS = 10_000;
const IDLE_MS = 30_000;

/** Cost of an enrolled agent without policies, and the time of its restart. */
export const agentBench: Bench = {
  name: "agent",
  async run() {
    const odp = await Installation.start({});
    try {
      await odp.enrol("bench");
      const connectMs = await startsToConnected(odp);
      await pause(SETTLE_MS);
      const { pid } = odp.agent("bench");
      const before = cpuSeconds(pid);
      await pause(IDLE_MS);
      const core = (100 * 1_000 * (cpuSeconds(pid) - before)) / IDLE_MS;
      return [
        {
          name: "start to connected",
          unit: "ms",
          ours: connectMs,
          against: 300,
          againstName: "limit",
          kind: "most",
          goal: 1,
        },
        {
          name: "idle, resident",
          unit: "MB",
          ours: residentMb(pid),
          against: 60,
          againstName: "limit",
          kind: "most",
          goal: 1,
        },
        { name: "idle, of a core", unit: "%", ours: core, against: 0.3, againstName: "limit", kind: "most", goal: 1 },
      ];
    } finally {
      await odp.stop();
    }
  },
};

/** Time from the start of the agent's process to the controller's welcome, as the agent logs it by its steady clock. */
async function startsToConnected(odp: Installation): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < STARTS; n += 1) {
    await odp.agent("bench").kill("SIGTERM");
    await odp.startAgent("bench");
    const match = await odp.agent("bench").printed(/"steadyMs":(\d+)/);
    times.push(Number(match[1]));
  }
  return median(times);
}
