import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { clusterVariables, Installation } from "../../e2e/installation.ts";
import { combinedLines, followAccessLog, isThere, markedLine } from "./access.ts";
import { withCluster } from "../driver/cluster.ts";
import { quantile, type Bench, type Figure } from "../driver/frame.ts";

const LINES_PER_SECOND = 2_000;
const TICK_MS = 100;
const TICKS = 300;
/** First ticks, whose lines are not measured because the compilers warm up. */
const WARMING_TICKS = 50;
/** Lines searched for at once. With more, the searches would affect the result. */
const PROBES_MAX = 2;
const LINES_PER_TICK = (LINES_PER_SECOND * TICK_MS) / 1_000;
const POLL_MS = 15;
const LINE_DEADLINE_MS = 60_000;
const LIMIT_MS = 1_000;

/** Time from writing a line to the query that finds it, while 2,000 lines are written each second. */
export const latencyBench: Bench = {
  name: "latency",
  async run() {
    const embedded = await latency("embedded", { ODP_STORE: "embedded" });
    const cluster = await withCluster((settings) => latency("one Cassandra node", clusterVariables(settings)));
    return [...embedded, ...cluster];
  },
};

async function latency(engine: string, variables: Readonly<Record<string, string>>): Promise<Figure[]> {
  const odp = await Installation.start(variables);
  try {
    const folder = await followAccessLog(odp);
    const times = await probe(odp, join(folder, "access.log"));
    const figure = (part: number, name: string): Figure => ({
      name: `line to queryable object, ${engine}, ${name} of ${times.length}`,
      unit: "ms",
      ours: quantile(times, part),
      against: LIMIT_MS,
      againstName: "limit",
      kind: "most",
      goal: 1,
    });
    return [figure(0.5, "p50"), figure(0.99, "p99")];
  } finally {
    await odp.stop();
  }
}

/** Each tick writes its lines. Its last line is searched for until found, if fewer than `PROBES_MAX` others are. */
async function probe(odp: Installation, path: string): Promise<number[]> {
  const seen: Promise<number>[] = [];
  let probes = 0;
  const beganMs = performance.now();
  for (let tick = 0; tick < TICKS; tick += 1) {
    await pause(Math.max(0, beganMs + tick * TICK_MS - performance.now()));
    const last = (tick + 1) * LINES_PER_TICK - 1;
    const writtenMs = performance.now();
    await appendFile(path, combinedLines(tick * LINES_PER_TICK, LINES_PER_TICK - 1) + markedLine(last));
    if (tick < WARMING_TICKS || probes >= PROBES_MAX) continue;
    probes += 1;
    seen.push(untilThere(odp, last, writtenMs).finally(() => (probes -= 1)));
  }
  return Promise.all(seen);
}

async function untilThere(odp: Installation, n: number, writtenMs: number): Promise<number> {
  while (!(await isThere(odp, n))) {
    if (performance.now() - writtenMs > LINE_DEADLINE_MS)
      throw new Error(`A line was not stored within ${LINE_DEADLINE_MS} ms.`);
    await pause(POLL_MS);
  }
  return performance.now() - writtenMs;
}
