import { decodeStored, encodeJson } from "../../../controller/store/format.ts";
import { quantile, type Bench, type Figure } from "../driver/frame.ts";
import { anonymousMb } from "../driver/process.ts";
import { openScheduling, type Scheduling } from "./scheduling.ts";

/** Number of stored schedules; smaller for a trial. */
const SCHEDULES = Number(process.env["ODP_BENCH_SCHEDULES"] ?? 100_000);
const PER_SECOND = Number(process.env["ODP_BENCH_FIRINGS"] ?? 1_000);
/** Each firing schedule fires once in this many seconds, each at a different moment. */
const PERIOD_S = 10;
const MEASURED_MS = 30_000;
const PUTS_PER_TXN = 100;
const DEFINITION = "jobs/definition/";

/**
 * Schedules that a controller reads from the store and fires, on hosts that answer at once; embedded, as a library. The
 * lateness of a run is the time from its due time until it is on record.
 */
export const firingsBench: Bench = {
  name: "firings",
  async run() {
    const late: number[] = [];
    /** Due time of each schedule including its jitter, as given to the scheduler. */
    const dueMs = new Map<string, number>();
    let [told, loadedMs, started] = [0, 0, performance.now()];
    await using scheduling = await openScheduling({
      fired: (name) => late.push(Date.now() - (dueMs.get(name) ?? Number.NaN)),
      due: (name, atMs) => {
        if (++told === SCHEDULES) loadedMs = performance.now() - started;
        if (atMs !== undefined && atMs > Date.now()) dueMs.set(name, atMs);
      },
    });
    await define(scheduling);
    console.log(`  ${SCHEDULES} schedules stored in ${Math.round(performance.now() - started)} ms`);
    started = performance.now();
    scheduling.scheduler.start();
    while (loadedMs === 0) await pause(100);
    await pause(2 * PERIOD_S * 1_000);
    late.length = 0;
    const before = process.cpuUsage();
    await pause(MEASURED_MS);
    const { user, system } = process.cpuUsage(before);
    return figures([...late], { loadedMs, workedMs: (user + system) / 1_000 });
  },
};

/** Stores the schedules. `PER_SECOND` times `PERIOD_S` of them fire in turns, the others once a year. */
async function define({ kv, define: save }: Scheduling): Promise<void> {
  await save({ name: "pattern", exec: ["x"], host: ["h1"], schedule: "0 0 1 1 *" });
  const entry = await kv.get(`${DEFINITION}pattern`);
  if (!entry) throw new Error("The pattern of the jobs is not there.");
  const pattern = decodeStored<{ readonly name: string; readonly schedule: string }>(entry.value);
  await kv.delete(entry.key);
  for (let from = 0; from < SCHEDULES; from += PUTS_PER_TXN) {
    const then = Array.from({ length: Math.min(PUTS_PER_TXN, SCHEDULES - from) }, (_, at) => {
      const name = `job-${from + at}`;
      const schedule =
        from + at < PER_SECOND * PERIOD_S ? `every ${PERIOD_S}s; jitter=${PERIOD_S - 1}s` : pattern.schedule;
      return {
        kind: "put",
        key: DEFINITION + name,
        value: encodeJson({ ...pattern, name, schedule, scheduledMs: Date.now() }),
      } as const;
    });
    await kv.txn({ if: [], then });
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

interface Times {
  readonly loadedMs: number;
  /** Processor time of all threads while firings were counted. */
  readonly workedMs: number;
}

function figures(late: readonly number[], { loadedMs, workedMs }: Times): readonly Figure[] {
  const perSecond = (late.length * 1_000) / MEASURED_MS;
  console.log(
    `  ${late.length} firings, late p50 ${quantile(late, 0.5)} ms, most ${Math.max(...late)} ms; ` +
      `each takes ${(workedMs / late.length).toFixed(2)} ms of the processor`,
  );
  const limit = { againstName: "limit", kind: "most", goal: 1 } as const;
  return [
    { ...{ name: `${SCHEDULES} schedules read from the store`, unit: "ms", ours: loadedMs, against: 5_000 }, ...limit },
    {
      ...{ name: "firings a second", unit: "firings/s", ours: perSecond, against: PER_SECOND },
      ...{ againstName: "those that are due", kind: "ratio", goal: 0.99 },
    },
    { ...{ name: "a firing's lateness, p99", unit: "ms", ours: quantile(late, 0.99), against: 100 }, ...limit },
    {
      ...{ name: "memory of the process", unit: "MB", ours: anonymousMb(process.pid), against: 1_024 },
      ...limit,
    },
  ];
}
