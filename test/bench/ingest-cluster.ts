import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { clusterVariables, Installation } from "../e2e/installation.ts";
import { combinedLines, countOf, followAccessLog, isThere, markedLine } from "./access.ts";
import { BareRecords } from "./bare-records.ts";
import { withCluster } from "./cluster.ts";
import { inTurns, type Bench, type Figure } from "./frame.ts";

/** All rounds together are counted by one call, which has a minute. */
const LINES_PER_ROUND = 20_000;
const POLL_MS = 100;
const ROUND_DEADLINE_MS = 300_000;

/**
 * From the bytes of a followed file to objects on one Cassandra node, by the clock, beside the bare driver that has
 * nothing to do but to write the rows.
 */
export const ingestClusterBench: Bench = {
  name: "ingest-cluster",
  run: () =>
    withCluster(async (settings) => {
      const bare = await BareRecords.open(settings);
      const odp = await Installation.start(clusterVariables(settings));
      try {
        return [await rowsFigure(odp, bare)];
      } finally {
        await odp.stop();
        await bare.close();
      }
    }),
};

async function rowsFigure(odp: Installation, bare: BareRecords): Promise<Figure> {
  const folder = await followAccessLog(odp);
  let rounds = 0;
  let bareRounds = 0;
  const measured = await inTurns(
    () => ingestRound(odp, folder, rounds++),
    () =>
      bare.write(
        combinedLines(bareRounds++ * LINES_PER_ROUND, LINES_PER_ROUND)
          .trimEnd()
          .split("\n"),
      ),
  );
  const stored = await countOf(odp);
  const expected = rounds * (LINES_PER_ROUND + 1);
  if (stored !== expected) throw new Error(`${stored} of ${expected} lines are stored.`);
  return {
    name: "follow → parse → acknowledged object",
    unit: "rows/s",
    ...measured,
    againstName: "the bare driver, same rows in batches",
    kind: "ratio",
    goal: 0.6,
  };
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
