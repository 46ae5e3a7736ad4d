import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { DISPATCH_GRACE_MS } from "../../common/limits.ts";
import { admissionOver } from "../emulator/admission.ts";
import type { EmulatedCommand, EmulatedEnd } from "../emulator/agent.ts";
import { EmulatedFleet } from "../emulator/fleet.ts";
import { seededRandom } from "../helpers/time/clock.ts";
import { prove } from "../helpers/runs/evidence.ts";
import { eventually } from "../helpers/programs/programs.ts";
import type { Installation } from "./installation.ts";
import { Trio, type Blow } from "./trio.ts";

/** Number of rounds; `npm run soak -- --leaders N` does more. */
const ROUNDS = Number(process.env["ODP_LEADER_ROUNDS"] ?? 3);
const SEED = Number(process.env["ODP_TEST_SEED"] ?? 1);
const BLOWS: readonly Blow[] = ["killed", "paused", "cut off", "unanswered"];
const HOSTS = ["h1", "h2", "h3"];
const TIMEOUT_S = 60;
/** Longest duration of a command, so that some are running whenever the leader is struck. */
const LONGEST_MS = 2_000;
const DEADLINE_MS = 2 * TIMEOUT_S * 1_000;
/** For most of a round no controller fires, and the missed runs are then fired one by one. */
const CAUGHT_UP_DEADLINE_MS = 120_000 + ROUNDS * 60_000;
const FINAL = new Set(["ok", "failed", "timeout", "unreachable", "cancelled", "expired"]);
const JOBS = [
  { name: "one", dir: "lead", host: ["h1"], groupmode: "parallel", everyS: 1 },
  { name: "all", dir: "lead", host: HOSTS, groupmode: "parallel", everyS: 5 },
  { name: "first", dir: "lead", host: HOSTS, groupmode: "one", everyS: 5 },
];

const cluster = inject("cluster");

/** Three controllers as processes; agents are emulated here, over the real protocol. */
describe.skipIf(!cluster.available)("while the controller that fires schedules is struck again and again", () => {
  const random = seededRandom(SEED);
  /** Number of starts of each command, by its id. */
  const begun = new Map<string, number>();
  let trio: Trio;
  let fleet: EmulatedFleet;

  beforeAll(async () => {
    if (!cluster.available) return;
    trio = await Trio.start(cluster.settings);
    const odp = await trio.any();
    for (const host of HOSTS) await odp.ok("POST", "/host", JSON.stringify({ host, isagent: 1 }));
    fleet = await EmulatedFleet.start(HOSTS, admissionOver(odp), carryOut);
    for (const { everyS, ...job } of JOBS) {
      const schedule = `every ${everyS}s; missed=all; overlap=allow`;
      await odp.ok("POST", "/job", JSON.stringify({ ...job, schedule, exec: ["x"], timeout: TIMEOUT_S }));
    }
  });

  afterAll(async () => {
    await fleet?.stop();
    await trio?.[Symbol.asyncDispose]();
  });

  it("every due run happens once, and every target ends in one final state by its deadline", {
    timeout: 2 * CAUGHT_UP_DEADLINE_MS + ROUNDS * 90_000,
  }, async () => {
    await moreBegin();
    for (let round = 0; round < ROUNDS; round++) {
      await trio.strike(BLOWS[round % BLOWS.length] ?? "killed");
      await moreBegin();
    }
    const odp = await trio.any();
    await nothingIsBehind(odp);
    for (const { name, dir } of JOBS) await odp.ok("GET", `/job/disable/${name}@${dir}`);
    const rows = await endedRows(odp);
    for (const job of JOBS) everyDueRunOnce(job, runsOf(job, rows));
    const states = everyTargetOnce(rows);
    await everyCommandOnce(odp, rows);
    prove("schedules-change-hands", { seeds: [SEED], rounds: ROUNDS, targets: rows.length, ...states });
  });

  async function carryOut({ command }: EmulatedCommand): Promise<EmulatedEnd> {
    begun.set(command.id, (begun.get(command.id) ?? 0) + 1);
    await new Promise((resolve) => setTimeout(resolve, random.next() * LONGEST_MS));
    return { output: [`${command.id}\n`] };
  }

  /** Waits until schedules start new commands, which were not running before this call. */
  async function moreBegin(): Promise<void> {
    const before = begun.size;
    await eventually("schedules go on", DEADLINE_MS, () => begun.size >= before + 2 * JOBS.length || undefined);
  }

  /** Waits until every job has a run with a due time after now, so that all earlier due runs have started. */
  async function nothingIsBehind(odp: Installation): Promise<void> {
    const nowMs = Date.now();
    for (const { name, dir } of JOBS)
      await eventually(`${name} has caught up`, CAUGHT_UP_DEADLINE_MS, async () => {
        const [row] = await odp.mql(`select max(due) as last from /matrix/jobs/jobrun where name='${name}@${dir}'`);
        return Number(row?.["last"]) > nowMs || undefined;
      });
  }

  /**
   * Waits until no run is in progress and every due run has rows, and returns all rows. If a controller is killed right
   * after it has decided a run, the controller that takes the run over writes its rows.
   */
  function endedRows(odp: Installation): Promise<readonly Run[]> {
    return eventually("every due run is there, and every target has ended", DEADLINE_MS, async () => {
      const all = (await odp.mql(
        "select runid, host, name, due, status, message, etime, deadline, outputsize from /matrix/jobs/jobrun limit -1",
      )) as unknown as readonly Run[];
      const isWhole = JOBS.every((job) => missingDues(job, runsOf(job, all)).length === 0);
      return isWhole && all.every(({ status }) => status !== "running") ? all : undefined;
    });
  }

  /** Fails if an agent ran a command twice, or under an id that no row has. */
  async function everyCommandOnce(odp: Installation, rows: readonly Run[]): Promise<void> {
    const known = new Set(rows.map(({ runid, host }) => `job/${runid}/${host}/0`));
    expect([...begun].filter(([id, times]) => times !== 1 || !known.has(id))).toEqual([]);
    const well = rows.filter(({ status }) => status === "ok").map(({ runid, host }) => `job/${runid}/${host}/0`);
    expect(well.filter((id) => !begun.has(id))).toEqual([]);
    const told = await odp.mql("select runid, host, status, out from /matrix/jobs/cmdrun limit -1");
    const outs = told.filter(({ status }) => status === "ok").map(({ out }) => String(out).trim());
    expect(outs.sort()).toEqual(well.sort());
  }
});

interface Run {
  readonly runid: string;
  readonly host: string;
  readonly name: string;
  readonly due: number;
  readonly status: string;
  readonly message: string;
  readonly etime: number;
  readonly deadline: number;
}

type ScheduledJob = (typeof JOBS)[number];

function runsOf({ name, dir }: ScheduledJob, rows: readonly Run[]): readonly Run[] {
  return rows.filter((row) => row.name === `${name}@${dir}`);
}

/** Due times without a run, between the first and the last run. */
function missingDues({ everyS }: ScheduledJob, rows: readonly Run[]): readonly number[] {
  const dues = new Set(rows.map(({ due }) => Number(due)));
  const [first, last, stepMs] = [Math.min(...dues), Math.max(...dues), everyS * 1_000];
  return Array.from({ length: (last - first) / stepMs }, (_, n) => first + n * stepMs).filter((due) => !dues.has(due));
}

/** Each due time from the first run to the last has exactly one run, on the right hosts. */
function everyDueRunOnce(job: ScheduledJob, rows: readonly Run[]): void {
  const { host, groupmode } = job;
  const runs = new Map<number, Run[]>();
  for (const row of rows) runs.set(Number(row.due), [...(runs.get(Number(row.due)) ?? []), row]);
  expect(missingDues(job, rows)).toEqual([]);
  for (const [due, of] of runs) {
    expect(new Set(of.map(({ runid }) => runid)).size, `runs of ${new Date(due).toISOString()}`).toBe(1);
    const hosts = of.map((row) => row.host).sort();
    if (groupmode === "parallel") expect(hosts).toEqual(host);
    else expect([new Set(hosts).size, host]).toEqual([hosts.length, expect.arrayContaining(hosts)]);
  }
}

/** Returns the number of targets for each final state. */
function everyTargetOnce(rows: readonly Run[]): Record<string, number> {
  expect(rows.filter(({ status }) => !FINAL.has(status))).toEqual([]);
  expect(rows.filter(({ etime, deadline }) => etime > deadline + DISPATCH_GRACE_MS)).toEqual([]);
  const states: Record<string, number> = {};
  for (const { status } of rows) states[status] = (states[status] ?? 0) + 1;
  return states;
}
