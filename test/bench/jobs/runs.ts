import { jobClasses, JobRuns, JobService } from "../../../controller/areas/jobs/index.ts";
import { ObjectService } from "../../../controller/areas/objects/index.ts";
import { systemPrincipal } from "../../../controller/areas/permissions/index.ts";
import { QueryService, visibleObjects } from "../../../controller/areas/query/index.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { openBenchEngine } from "../driver/engine.ts";
import { TEST_SECRETS, testPrincipal, testRuntime } from "../../helpers/time/runtime.ts";
import { median, quantile, type Bench, type Figure } from "../driver/frame.ts";
import { NAMED_HOSTS } from "../../helpers/hosts/named-hosts.ts";

/** Number of stored runs; `ODP_BENCH_RUNS=1000000` for the whole goal. */
const STORED = Number(process.env["ODP_BENCH_RUNS"] ?? 100_000);
const ROWS_PER_BATCH = 1_000;
const QUERIES = 200;
const RUNS = 200;
const ROUNDS = 9;
const QUERY_MAX_MS = 100;
const SLOWER_MOST = 1.05;
const KEPT_MS = 30 * 86_400_000;
const JOBS = 500;
const HOSTS = 1_000;
const PATH = "/matrix/jobs/jobrun";
const principal = testPrincipal();

/** Operators' queries of stored runs, and the cost that stored runs add to the next one; embedded, as a library. */
export const runsBench: Bench = {
  name: "runs",
  async run() {
    await using few = await openWorld();
    await using many = await openWorld();
    await nextRuns(few.runs);
    const nowMs = Date.now();
    await fill(many.objects, nowMs);
    await nextRuns(many.runs);
    return [...(await queryFigures(many.query, nowMs)), await slower(few.runs, many.runs)];
  },
};

interface World extends AsyncDisposable {
  readonly objects: ObjectService;
  readonly query: QueryService;
  readonly runs: JobRuns;
}

async function openWorld(): Promise<World> {
  const engine = await openBenchEngine();
  const runtime = { ...testRuntime(realClock), random: randomness() };
  const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  const query = new QueryService({ objects, runtime });
  const jobs = new JobService({ targets: NAMED_HOSTS, stores: engine, runtime, objects });
  for (const definition of jobClasses(jobs)) objects.registerSystemClass(definition);
  const runs = new JobRuns({
    targets: NAMED_HOSTS,
    ...{ stores: engine, runtime, jobs, objects, secrets: TEST_SECRETS },
    hosts: {
      dispatch: (_principal, host) =>
        Promise.resolve({ host, state: "ok", code: 0, message: "", startedMs: 1, endedMs: 2 }),
    },
    stored: { outcome: () => Promise.resolve(undefined) },
    notifications: { publish: () => undefined },
    controllers: { own: "bench", has: () => true },
  });
  await jobs.save(principal, { name: "next", exec: ["x"], host: ["h1"] });
  return {
    ...{ objects, query, runs },
    [Symbol.asyncDispose]: async () => {
      await runs.close();
      await objects.close();
      await engine[Symbol.asyncDispose]();
    },
  };
}

function randomness() {
  return { next: Math.random, bytes: (count: number) => crypto.getRandomValues(new Uint8Array(count)) };
}

async function fill(objects: ObjectService, nowMs: number): Promise<void> {
  const platform = systemPrincipal("matrix", "/matrix", "");
  for (let from = 0; from < STORED; from += ROWS_PER_BATCH) {
    const rows = Array.from({ length: Math.min(ROWS_PER_BATCH, STORED - from) }, (_, at) => rowOf(from + at, nowMs));
    await objects.unrestricted.insert(platform, PATH, rows);
  }
}

/** Row of run `n` of thirty days at an even pace. One in fifty failed. */
function rowOf(n: number, nowMs: number) {
  const stime = stimeOf(n, nowMs);
  return {
    ...{ runid: `run-${n}`, host: `host-${n % HOSTS}`, name: `job-${n % JOBS}`, dir: "", type: "job" },
    ...{ status: n % 50 === 0 ? "failed" : "ok", cmds: ["x"], out: `the output of run ${n}`, err: "", message: "" },
    ...{ stime, etime: stime + 1_000, deadline: stime + 60_000, code: 0, outputsize: 20, source: "admin" },
  };
}

function stimeOf(n: number, nowMs: number): number {
  return Math.floor(nowMs - KEPT_MS + (n * KEPT_MS) / STORED);
}

async function queryFigures(query: QueryService, nowMs: number): Promise<readonly Figure[]> {
  const since = (rows: number): number => Math.floor(nowMs - (rows * KEPT_MS) / STORED);
  const columns = "SELECT runid, host, name, status, stime FROM";
  const newest = "ORDER BY stime DESC LIMIT 50";
  const asked: readonly (readonly [string, string, (n: number) => readonly (string | number)[]])[] = [
    ["the newest 50", "", () => []],
    ["those before a time", "WHERE stime < ?", (n) => [since((STORED * (n + 1)) / (QUERIES + 1))]],
    ["of a job", "WHERE name = ?", (n) => [`job-${n % JOBS}`]],
    ["that failed", "WHERE status = 'failed'", () => []],
    [
      "of a host since a day",
      "WHERE host = ? AND stime >= ?",
      (n) => [`host-${(STORED - 1 - n) % HOSTS}`, nowMs - 86_400_000],
    ],
    ["that failed since a day", "WHERE status = 'failed' AND stime >= ?", () => [nowMs - 86_400_000]],
  ];
  const figures: Figure[] = [];
  for (const [name, where, values] of asked) {
    const times: number[] = [];
    const before = process.cpuUsage();
    for (let n = 0; n < QUERIES; n++) {
      const began = performance.now();
      const found = await query.rows(principal, `${columns} ${PATH} ${where} ${newest}`, values(n));
      times.push(performance.now() - began);
      if (found.length === 0) throw new Error(`No runs were found: ${where}.`);
    }
    const { user, system } = process.cpuUsage(before);
    console.log(`  ${name}: ${((user + system) / 1_000 / QUERIES).toFixed(1)} ms of the processor each`);
    figures.push({
      ...{ name: `of ${STORED} stored runs ${name}, p95`, unit: "ms", ours: quantile(times, 0.95) },
      ...{ against: QUERY_MAX_MS, againstName: "limit", kind: "most", goal: 1 },
    });
  }
  return figures;
}

/** Processor time in ms of a run on one host, from its request until its end is on record. */
async function nextRuns(runs: JobRuns): Promise<number> {
  const before = process.cpuUsage();
  for (let n = 0; n < RUNS; n++) await (await runs.execute(principal, "next", {})).finished;
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / RUNS;
}

/** Measures in turns, because other load on the machine changes from minute to minute. */
async function slower(few: JobRuns, many: JobRuns): Promise<Figure> {
  const [without, beside, ratios]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    const [alone, after] = [await nextRuns(few), await nextRuns(many)];
    without.push(alone);
    beside.push(after);
    ratios.push(after / alone);
  }
  console.log(
    `  the next run takes ${median(beside).toFixed(2)} ms, ${median(without).toFixed(2)} ms where there are none stored, of the processor`,
  );
  return {
    ...{ name: `the next run with ${STORED} stored ones, beside one without`, unit: "times" },
    ...{ ours: median(ratios), against: SLOWER_MOST, againstName: "limit", kind: "most", goal: 1 },
  };
}
