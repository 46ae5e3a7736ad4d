import { lateOfBree, type BreeLoad } from "./bree.ts";
import { lateOfCron } from "./cron.ts";
import { quantile, type Bench, type Figure } from "../driver/frame.ts";
import { openScheduling } from "./scheduling.ts";

/** All schedules are due in the same second, each time. */
const LOAD: BreeLoad = { schedules: 20, periodS: 2, measuredMs: 30_000 };
/** Cron has no seconds, so the same number is due at once, but only every minute. */
const CRON_MINUTES = 2;

/**
 * Time from the second in which schedules are due to the start of their commands, after the run is on record and
 * flushed; beside bree and Debian's cron, which record nothing.
 */
export const latenessBench: Bench = {
  name: "lateness",
  async run() {
    const ours = await lateOfOurs();
    console.log(`  ours: ${told(ours)}`);
    return [
      ...beside("bree", ours, await lateOfBree(LOAD)),
      ...beside("Debian's cron", ours, await lateOfCron(LOAD.schedules, CRON_MINUTES)),
    ];
  },
};

function beside(name: string, ours: readonly number[], theirs: readonly number[] | undefined): readonly Figure[] {
  if (!theirs) return [];
  console.log(`  ${name}: ${told(theirs)}`);
  return [
    {
      ...{ name: `${LOAD.schedules} schedules due at once: from then to begun, p95`, unit: "ms" },
      ...{ ours: quantile(ours, 0.95), against: quantile(theirs, 0.95), againstName: name, kind: "most", goal: 1 },
    },
  ];
}

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
