import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Etcd3 } from "etcd3";
import { clusterVariables, Installation } from "../../e2e/installation.ts";
import { combinedLines, countOf, followAccessLog, isThere, markedLine } from "./access.ts";
import { BareRecords } from "../store/bare-records.ts";
import { withCluster } from "../driver/cluster.ts";
import { inTurns, type Bench, type Figure } from "../driver/frame.ts";
import { cpuSeconds } from "../driver/process.ts";

/** So many that the time until the agent looks at the file does not matter. One call of at most a minute counts all. */
const LINES_PER_ROUND = 100_000;
/** Makes both rounds about as long, because a node flushes and compacts a part of a round's data in the next one. */
const BARE_LINES_PER_ROUND = 2 * LINES_PER_ROUND;
const POLL_MS = 250;
const ROUND_DEADLINE_MS = 300_000;

/**
 * From the bytes of a followed file to objects on one Cassandra node, by the clock, beside the bare driver that only
 * writes the rows.
 */
export const ingestClusterBench: Bench = {
  name: "ingest-cluster",
  run: () =>
    withCluster(async (settings) => {
      const bare = await BareRecords.open(settings);
      const odp = await Installation.start(clusterVariables(settings));
      const etcd = new Etcd3({ hosts: [...settings.etcdEndpoints] });
      try {
        return await figures(odp, bare, etcd);
      } finally {
        etcd.close();
        await odp.stop();
        await bare.close();
      }
    }),
};

async function figures(odp: Installation, bare: BareRecords, etcd: Etcd3): Promise<readonly Figure[]> {
  const folder = await followAccessLog(odp);
  const before = await revisionOf(etcd);
  let rounds = 0;
  let bareRounds = 0;
  const pids = [odp.agent("web-1").pid, odp.controller.pid];
  const costBefore = pids.map(cpuSeconds);
  const measured = await inTurns(
    () => ingestRound(odp, folder, rounds++),
    () =>
      bare.write(
        combinedLines(bareRounds++ * BARE_LINES_PER_ROUND, BARE_LINES_PER_ROUND)
          .trimEnd()
          .split("\n"),
      ),
  );
  const revisions = (await revisionOf(etcd)) - before;
  const [agent = 0, controller = 0] = pids.map((pid, at) => cpuSeconds(pid) - (costBefore[at] ?? 0));
  const costOfLine = (seconds: number): string => ((seconds * 1_000_000) / (rounds * LINES_PER_ROUND)).toFixed(1);
  console.log(`  processor time of a line: agent ${costOfLine(agent)} µs, controller ${costOfLine(controller)} µs`);
  const stored = await countOf(odp);
  const expected = rounds * (LINES_PER_ROUND + 1);
  if (stored !== expected) throw new Error(`${stored} of ${expected} lines are stored.`);
  return [
    {
      name: "follow → parse → acknowledged object",
      unit: "rows/s",
      ...measured,
      againstName: "the bare driver, same rows in batches",
      kind: "ratio",
      goal: 0.6,
    },
    {
      name: "etcd revisions for 100,000 lines",
      unit: "revisions",
      ours: (revisions * 100_000) / expected,
      against: 20,
      againstName: "the limit",
      kind: "most",
      goal: 1,
    },
  ];
}

/** Revision of the whole etcd store. */
async function revisionOf(etcd: Etcd3): Promise<number> {
  return Number((await etcd.get("none").exec()).header.revision);
}

async function ingestRound(odp: Installation, folder: string, round: number): Promise<number> {
  const first = round * (LINES_PER_ROUND + 1);
  const last = first + LINES_PER_ROUND;
  await writeFile(join(folder, "access.log.new"), combinedLines(first, LINES_PER_ROUND) + markedLine(last));
  const startedMs = performance.now();
  await rename(join(folder, "access.log.new"), join(folder, "access.log"));
  while (!(await isThere(odp, last))) {
    if (performance.now() - startedMs > ROUND_DEADLINE_MS)
      throw new Error(`The lines were not stored within ${ROUND_DEADLINE_MS} ms.`);
    await pause(POLL_MS);
  }
  return (LINES_PER_ROUND * 1_000) / (performance.now() - startedMs);
}
