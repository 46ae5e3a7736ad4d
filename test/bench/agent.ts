import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Installation } from "../e2e/installation.ts";
import { median, type Bench } from "./frame.ts";

const STARTS = 5;
const SETTLE_MS = 10_000;
const IDLE_MS = 30_000;
const CLOCK_TICKS_PER_SECOND = 100;

/** An enrolled agent without policies: what it costs to have it, and how fast it is there again. */
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
        { name: "start to connected", unit: "ms", ours: connectMs, against: 300, againstName: "limit", kind: "most", goal: 1 },
        { name: "idle, resident", unit: "MB", ours: residentMb(pid), against: 60, againstName: "limit", kind: "most", goal: 1 },
        { name: "idle, of a core", unit: "%", ours: core, against: 0.3, againstName: "limit", kind: "most", goal: 1 },
      ];
    } finally {
      await odp.stop();
    }
  },
};

/** By the steady clock of its process, which begins with it: to the controller's welcome, as it logs it. */
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

function residentMb(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kilobytes) / 1_024;
}

/** User and system time of the process (proc(5), fields 14 and 15 of stat, in clock ticks). */
function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND;
}
