import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { SESSION_STEADY_MS } from "../../../common/limits.ts";
import { eventually } from "../../helpers/programs/programs.ts";
import { Installation } from "../../e2e/installation.ts";
import { combinedLines, followAccessLog, isThere, markedLine } from "./access.ts";
import { median, type Bench } from "../driver/frame.ts";

const RESTARTS = 5;
const LINES_BEFORE = 20_000;
const LIMIT_MS = 3_000;
const DEADLINE_MS = 120_000;

/** Time from `kill -9` of the only controller, restarted at once, until a query finds the first line written since. */
export const recoveryBench: Bench = {
  name: "recovery",
  async run() {
    const odp = await Installation.start({ ODP_STORE: "embedded" });
    try {
      const log = join(await followAccessLog(odp), "access.log");
      await appendFile(log, combinedLines(0, LINES_BEFORE) + markedLine(LINES_BEFORE));
      await there(odp, LINES_BEFORE);
      const times: number[] = [];
      for (let n = 1; n <= RESTARTS; n += 1) times.push(await recovered(odp, log, LINES_BEFORE + n));
      const figure = { unit: "ms", against: LIMIT_MS, againstName: "limit", kind: "most", goal: 1 } as const;
      return [
        { ...figure, name: "kill -9 to the first new object, median", ours: median(times) },
        { ...figure, name: "kill -9 to the first new object, slowest", ours: Math.max(...times) },
      ];
    } finally {
      await odp.stop();
    }
  },
};

async function recovered(odp: Installation, log: string, n: number): Promise<number> {
  // An agent reconnects more slowly to a controller whose session was short.
  await pause(SESSION_STEADY_MS + 1_000);
  await odp.controller.kill("SIGKILL");
  const killedMs = performance.now();
  await appendFile(log, markedLine(n));
  await odp.startController();
  await there(odp, n);
  return performance.now() - killedMs;
}

async function there(odp: Installation, n: number): Promise<void> {
  await eventually(`line ${n} is stored`, DEADLINE_MS, async () => (await isThere(odp, n)) || undefined);
}
