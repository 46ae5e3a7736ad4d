import { Cron } from "croner";
import { parseSchedule } from "../../../common/schedule/index.ts";
import { inTurns, type Bench, type Figure } from "../driver/frame.ts";

const SCHEDULES = 100_000;
const FIRSTS = 5_000;
const MOST_MS = 5_000;
const ZONE = "Europe/Berlin";
const NOW_MS = Date.UTC(2026, 10, 23, 4, 40);
const SHARED = ["0 3 * * *", "*/5 * * * *", "30 2 * * MON-FRI", "0 0 1 * *", "every 5m", "15 */4 * * *"];

/** Reads definitions like a controller that begins to fire: parses each schedule and computes its next time. */
export const schedulesBench: Bench = {
  name: "schedules",
  async run() {
    const same = workedMs(() => loadAll(SCHEDULES, (n) => SHARED[n % SHARED.length] ?? ""));
    const different = workedMs(() => loadAll(SCHEDULES, patternOf));
    let from = SCHEDULES;
    const rate = (work: (n: number) => void) => (): Promise<number> => {
      const ms = workedMs(() => {
        for (let n = from; n < from + FIRSTS; n++) work(n);
      });
      return Promise.resolve((FIRSTS * 1_000) / ms);
    };
    const ours = rate((n) => parseSchedule(patternOf(n), ZONE)?.next(NOW_MS));
    const bare = rate((n) => new Cron(patternOf(n), { paused: true, timezone: ZONE }).nextRun(new Date(NOW_MS)));
    const first = await inTurns(() => {
      // Patterns that were not parsed before.
      from += FIRSTS;
      return ours();
    }, bare);
    return [
      most(`parse ${SCHEDULES} schedules of ${SHARED.length} texts and find their next times`, same),
      most(`the same of ${SCHEDULES} texts`, different),
      {
        ...{ name: "parse a pattern in a zone and find its next time", unit: "patterns/s", ...first },
        ...{ againstName: "croner alone", kind: "ratio", goal: 1 },
      },
    ];
  },
};

/** The first 483,840 patterns all differ. */
function patternOf(n: number): string {
  const [minute, hour, day] = [n % 60, Math.floor(n / 60) % 24, Math.floor(n / 1_440) % 28];
  return `${minute} ${hour} ${day + 1} ${(Math.floor(n / 40_320) % 12) + 1} *`;
}

function loadAll(count: number, textOf: (n: number) => string): void {
  for (let n = 0; n < count; n++) parseSchedule(textOf(n), ZONE)?.next(NOW_MS);
}

/** Processor time of `work` in ms, without the time in which this process waits for a processor. */
function workedMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

function most(name: string, ours: number): Figure {
  return { name, unit: "ms", ours, against: MOST_MS, againstName: "the goal", kind: "most", goal: 1 };
}
