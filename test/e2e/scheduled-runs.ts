import { expect } from "vitest";
import { eventually } from "../helpers/programs/programs.ts";
import { dueAccount, type DueAccount } from "../helpers/runs/due-account.ts";
import type { Installation } from "./installation.ts";

const GOING_ON_DEADLINE_MS = 180_000;

/**
 * Each second from a policy's first run to one that begins after now is in exactly one run record, or counted by one
 * gap. An agent's entries arrive in order, so everything before that last run is stored, except for entries that are
 * being stored together with it.
 */
export async function everyRunOnce(odp: Installation, policy: string): Promise<DueAccount> {
  const nowMs = Date.now();
  await eventually(`the runs of ${policy} go on`, GOING_ON_DEADLINE_MS, async () => {
    const [row] = await odp.mql(
      `select max(scheduled) as last from /matrix/system/policyrun where policy='${policy}' and state='ok'`,
    );
    return Number(row?.["last"]) > nowMs || undefined;
  });
  let seen: DueAccount | undefined;
  return eventually(`every second of ${policy} is accounted for`, GOING_ON_DEADLINE_MS, async () => {
    seen = await account(odp, policy);
    if (seen.runs + seen.skipped > seen.due)
      throw new Error(`More runs of ${policy} than were due: ${JSON.stringify(seen)}`);
    return seen.runs + seen.skipped === seen.due ? seen : undefined;
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${JSON.stringify(seen)}`);
  });
}

/** Due times of a policy with runs every second, from its first run to its last, that are in no run and no gap. */
export async function unaccounted(odp: Installation, policy: string): Promise<number[]> {
  const runs = await odp.mql(`select scheduled from /matrix/system/policyrun where policy='${policy}' limit -1`);
  const gaps = await odp.mql(`select count, stime from /matrix/system/policygap where policy='${policy}' limit -1`);
  const known = new Set(runs.map((run) => Number(run["scheduled"])));
  const [first, last] = [Math.min(...known), Math.max(...known)];
  for (const gap of gaps)
    for (let index = 0; index < Number(gap["count"]); index += 1) known.add(Number(gap["stime"]) + index * 1_000);
  const due = Array.from({ length: (last - first) / 1_000 + 1 }, (_, index) => first + index * 1_000);
  return due.filter((dueMs) => !known.has(dueMs));
}

async function account(odp: Installation, policy: string): Promise<DueAccount> {
  const runs = await odp.mql(
    `select scheduled, state, code from /matrix/system/policyrun where policy='${policy}' limit -1`,
  );
  const gaps = await odp.mql(
    `select reason, count, unit, stime, etime from /matrix/system/policygap where policy='${policy}' limit -1`,
  );
  const scheduled = runs.map((run) => Number(run["scheduled"]));
  expect(new Set(scheduled).size).toBe(scheduled.length);
  expect(runs.every((run) => ["ok", "failed", "interrupted"].includes(String(run["state"])))).toBe(true);
  return dueAccount(
    scheduled,
    gaps.map((gap) => ({ fromMs: Number(gap["stime"]), count: Number(gap["count"]) })),
  );
}
