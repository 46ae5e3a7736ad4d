import { expect } from "vitest";
import { eventually } from "../helpers/programs.ts";
import type { Installation } from "./installation.ts";

const GOING_ON_DEADLINE_MS = 180_000;
const RUNS_TO_SEE = 5;

/** Each second from a policy's first run to its last is in exactly one run record, or counted by one gap. */
export async function everyRunOnce(odp: Installation, policy: string): Promise<{ readonly skipped: number }> {
  await eventually("the runs go on", GOING_ON_DEADLINE_MS, async () => {
    const [row] = await odp.mql(`select count(*) from /matrix/system/policyrun where policy='${policy}' and state='ok'`);
    return Number(row?.["count"]) >= RUNS_TO_SEE || undefined;
  });
  const runs = await odp.mql(`select scheduled, state, code from /matrix/system/policyrun where policy='${policy}' limit -1`);
  const gaps = await odp.mql(`select reason, count, unit, stime, etime from /matrix/system/policygap where policy='${policy}' limit -1`);
  const scheduled = runs.map((run) => Number(run["scheduled"])).sort((a, b) => a - b);
  expect(new Set(scheduled).size).toBe(scheduled.length);
  expect(runs.every((run) => ["ok", "failed", "interrupted"].includes(String(run["state"])))).toBe(true);
  const last = scheduled.at(-1) ?? 0;
  const due = (last - (scheduled[0] ?? 0)) / 1_000 + 1;
  const skipped = gaps.filter((gap) => Number(gap["stime"]) <= last).reduce((sum, gap) => sum + Number(gap["count"]), 0);
  expect({ due, runs: scheduled.length, skipped }).toEqual({ due, runs: due - skipped, skipped });
  return { skipped };
}
