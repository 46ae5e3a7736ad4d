import { appendFile, mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Installation } from "../../e2e/installation.ts";
import { median, type Bench, type Figure } from "../driver/frame.ts";
import { anonymousMb, cpuSeconds, residentMb } from "../driver/process.ts";

const STARTS = 5;
const SETTLE_MS = 10_000;
const IDLE_MS = 30_000;
/** A day's runs of a command each minute, done by policies that run each second. */
const DAY_RUNS = 1_440;
const POLICIES = 12;
const LINES_PER_SECOND = 2_000;
const SECONDS_PER_ROTATION = 20;
/** Time at rest until V8 has collected and given back what the work left. */
const REST_MS = 60_000;
const RULE = "/matrix/rules/bench";

/** Cost of an enrolled agent without policies, the time of its restart, and its memory after a day's work. */
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
      const figures = [
        most("start to connected", "ms", connectMs, 300),
        most("idle, resident", "MB", residentMb(pid), 60),
        most("idle, anonymous", "MB", anonymousMb(pid), 25),
        most("idle, of a core", "%", core, 0.3),
      ];
      await workOfDay(odp);
      const name = `idle after ${DAY_RUNS} runs of commands and ${LINES_PER_SECOND} lines a second meanwhile, anonymous`;
      return [...figures, most(name, "MB", anonymousMb(pid), 25)];
    } finally {
      await odp.stop();
    }
  },
};

function most(name: string, unit: string, ours: number, against: number): Figure {
  return { name, unit, ours, against, againstName: "limit", kind: "most", goal: 1 };
}

/** Commands and a followed, rotated log, until as many commands as in a day have run and all of it is at rest again. */
async function workOfDay(odp: Installation): Promise<void> {
  const logs = join(odp.folder, "logs");
  await mkdir(logs);
  await odp.mql("create class /matrix/bench (text varchar) with kind=record");
  const rule = "--class=/matrix/bench\n--parser=text\n--fields=text";
  await odp.ok("PUT", "/mxobject/rule", new URLSearchParams({ key: RULE, value: rule }));
  const common = { rule: RULE, hosts: ["bench"] };
  const names = Array.from({ length: POLICIES }, (_, at) => `day-${at}`);
  for (const name of names) {
    const policy = { ...common, name, ctype: 1, interval: 1, unit: "second", command: `echo ${name} is well` };
    await odp.ok("POST", "/monitoring/policy", JSON.stringify(policy));
  }
  const log = { ...common, name: "day-log", dir: logs, match: "^app\\.log(\\.\\d+)?$" };
  await odp.ok("POST", "/monitoring/policy/log", JSON.stringify(log));
  const file = join(logs, "app.log");
  for (let second = 0; second * POLICIES < DAY_RUNS; second++) {
    if (second > 0 && second % SECONDS_PER_ROTATION === 0) await rename(file, `${file}.1`);
    await appendFile(file, "a line of a log that is as long as lines often are\n".repeat(LINES_PER_SECOND));
    await pause(1_000);
  }
  for (const name of [...names, "day-log"]) await odp.ok("DELETE", `/monitoring/policy/${name}?force=true`);
  await pause(REST_MS);
}

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
