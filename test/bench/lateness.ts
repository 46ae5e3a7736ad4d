import { lateOfBree, type BreeLoad } from "./bree.ts";
import { quantile, type Bench } from "./frame.ts";
import { openScheduling } from "./scheduling.ts";

/** All of them are due in the same second, each time. */
const LOAD: BreeLoad = { schedules: 20, periodS: 2, measuredMs: 30_000 };

/**
 * From the second in which schedules are due to the begin of their commands, after the run is on record and flushed;
 * beside bree, which keeps nothing on record.
 */
export const latenessBench: Bench = {
  name: "lateness",
  async run() {
    const ours = await lateOfOurs();
    const theirs = await lateOfBree(LOAD);
    console.log(`  ours: ${told(ours)}${theirs ? `; bree: ${told(theirs)}` : ""}`);
    if (!theirs) return [];
    return [
      {
        ...{ name: `${LOAD.schedules} schedules every ${LOAD.periodS} s: due to begun, p95`, unit: "ms" },
        ...{ ours: quantile(ours, 0.95), against: quantile(theirs, 0.95), againstName: "bree", kind: "most", goal: 1 },
      },
    ];
  },
};

async function lateOfOurs(): Promise<readonly number[]> {
  const { schedules, periodS, measuredMs } = LOAD;
  const late: number[] = [];
  await using scheduling = await openScheduling({ began: () => late.push(Date.now() % (1_000 * periodS)) });
  for (let n = 0; n < schedules; n++)
    await scheduling.define({ name: `job-${n}`, exec: ["x"], host: ["h1"], schedule: `*/${periodS} * * * * *` });
  scheduling.scheduler.start();
  await new Promise((resolve) => setTimeout(resolve, measuredMs));
  return late;
}

function told(late: readonly number[]): string {
  return `${late.length} runs, p50 ${quantile(late, 0.5)} ms, p99 ${quantile(late, 0.99)} ms`;
}
