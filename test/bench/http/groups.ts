import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { ObjectService } from "../../../controller/areas/objects/index.ts";
import { QueryService, visibleObjects } from "../../../controller/areas/query/index.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { openTestEngine } from "../../helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../helpers/time/runtime.ts";
import { duckDbMs } from "../records/duckdb.ts";
import { type Bench, type Figure, median, quantile } from "../driver/frame.ts";
import { anonymousMb } from "../driver/process.ts";

const run = promisify(execFile);
/** Number of records; a trial takes fewer. */
const ROWS = Number(process.env["ODP_BENCH_OBJECTS"] ?? 1_000_000);
const ROWS_PER_BATCH = 1_000;
const FIRST_MS = Date.UTC(2026, 0, 1);
const SPAN_MS = 10 * 86_400_000;
const HOUR_MS = 3_600_000;
const LEVELS = ["debug", "info", "warn", "error", "fatal"];
const ROUNDS = 3;
const HOURS_ASKED = 20;
const CALLS = 200;
const GROUP_MAX_MS = 2_000;
const HOUR_MAX_MS = 50;
const MEMORY_MAX_MB = 100;
const OPERATOR_MAX_US = 1;
const SAMPLE_MS = 20;
const SQLITE_OUTPUT_MAX_BYTES = 64 << 20;
const CLASS = "/matrix/log";
const CSV = "log.csv";
const principal = testPrincipal();

const GROUP = `select level, bucket(vtime, '1 minute') as at, count(*) as n from ${CLASS}`;
const FILTER = `select count(*) as n from ${CLASS} where took > 500 and level = 'error'`;
const GROUP_ALL = `${GROUP} group by level, at limit -1`;
const SQL_GROUP = "select level, vtime / 60000, count(*) from log group by 1, 2";
const SQL_FILTER = "select count(*) from log where took > 500 and level = 'error'";
const PLAIN = `select sum(took) as s from ${CLASS}`;
const COMPUTED = `select sum(took * 2 + 3 - 1 + took) as s from ${CLASS}`;
const OPERATORS = 4;

/** A million records of a log on embedded, grouped and filtered, beside the program `sqlite3` over the same rows. */
export const groupsBench: Bench = {
  name: "groups",
  async run() {
    const folder = await mkdtemp(join(tmpdir(), "odp-groups-"));
    const engine = await openTestEngine();
    const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
    const query = new QueryService({ objects, runtime: { clock: realClock } });
    try {
      await query.run(principal, `create class ${CLASS} (level varchar, host varchar, took int) with kind=record`);
      for (let from = 0; from < ROWS; from += ROWS_PER_BATCH)
        await objects.unrestricted.insert(principal, CLASS, rowsFrom(from), { atMs: atOf(from) });
      const sqlite = await filledSqlite(join(folder, "log.db"), folder);
      return [
        ...(await wholeFigures(query, sqlite)),
        ...(await duckDbFigures(query, folder)),
        await hourFigure(query),
        await operatorFigure(query),
        await besideFigure(query),
      ];
    } finally {
      await objects.close();
      await engine[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
    }
  },
};

function rowsFrom(from: number): Record<string, string | number>[] {
  return Array.from({ length: ROWS_PER_BATCH }, (_, at) => ({
    level: LEVELS[(from + at * 7) % LEVELS.length] ?? "",
    host: `web-${(from + at) % 100}`,
    took: ((from + at) * 7_919) % 1_000,
  }));
}

const lastHourMs = (): number => atOf(ROWS - ROWS_PER_BATCH) - HOUR_MS;

/** Time of the records of a batch; all of them have the same. */
function atOf(from: number): number {
  return FIRST_MS + Math.floor((from / ROWS) * SPAN_MS);
}

async function filledSqlite(file: string, folder: string): Promise<string> {
  const csv = join(folder, CSV);
  const lines: string[] = [];
  for (let from = 0; from < ROWS; from += ROWS_PER_BATCH)
    for (const { level, host, took } of rowsFrom(from)) lines.push(`${atOf(from)},${level},${host},${took}`);
  await writeFile(csv, `${lines.join("\n")}\n`);
  await run("sqlite3", [
    file,
    "create table log (vtime integer, level text, host text, took integer)",
    ".mode csv",
    `.import ${csv} log`,
    "create index log_vtime on log (vtime)",
  ]);
  return file;
}

/** Milliseconds of a query by the timer of `sqlite3`, so that the start of the program does not count. */
async function sqliteMs(file: string, sql: string): Promise<number> {
  const asked = run("sqlite3", [file], { maxBuffer: SQLITE_OUTPUT_MAX_BYTES });
  asked.child.stdin?.end(`.timer on\n${sql};\n`);
  const { stdout } = await asked;
  return Number(/Run Time: real (\S+)/.exec(stdout)?.[1]) * 1_000;
}

async function timeOf(query: QueryService, mql: string): Promise<number> {
  const began = performance.now();
  const rows = await query.rows(principal, mql);
  if (rows.length === 0) throw new Error("the query finds nothing");
  return performance.now() - began;
}

async function wholeFigures(query: QueryService, sqlite: string): Promise<readonly Figure[]> {
  const group = await besideSqlite(query, GROUP_ALL, { sqlite, sql: SQL_GROUP });
  const filter = await besideSqlite(query, FILTER, { sqlite, sql: SQL_FILTER });
  const what = `${ROWS} records by level and minute`;
  return [
    most(`group of ${what}`, "ms", group.ours, GROUP_MAX_MS),
    most("processor time of it", "ms", await processorMsOf(query, GROUP_ALL), GROUP_MAX_MS),
    most(`anonymous memory added by it`, "MB", group.addedMb, MEMORY_MAX_MB),
    beside(`group of ${what}`, group, "sqlite3"),
    beside(`two conditions on each of ${ROWS} records`, filter, "sqlite3"),
  ];
}

/** Figures of a column store in memory, for comparison only. odp is no such store, so they have no goal. */
async function duckDbFigures(query: QueryService, folder: string): Promise<readonly Figure[]> {
  const queries = [SQL_GROUP.replace("/", "//"), SQL_FILTER];
  const times = await duckDbMs({ folder, csv: join(folder, CSV), queries, rounds: ROUNDS });
  if (times === undefined) return [];
  const [group = NaN, filter = NaN] = times;
  return [
    { ...beside("the same group", { ours: await timeOf(query, GROUP_ALL), theirs: group }, "DuckDB"), goal: 0 },
    { ...beside("the same two conditions", { ours: await timeOf(query, FILTER), theirs: filter }, "DuckDB"), goal: 0 },
  ];
}

interface Both {
  readonly ours: number;
  readonly theirs: number;
}

interface Beside extends Both {
  readonly addedMb: number;
}

async function besideSqlite(
  query: QueryService,
  mql: string,
  { sqlite, sql }: { readonly sqlite: string; readonly sql: string },
): Promise<Beside> {
  const before = anonymousMb(process.pid);
  let highest = before;
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const sampling = setInterval(() => (highest = Math.max(highest, anonymousMb(process.pid))), SAMPLE_MS);
    ours.push(await timeOf(query, mql).finally(() => clearInterval(sampling)));
    theirs.push(await sqliteMs(sqlite, sql));
  }
  return { ours: median(ours), theirs: median(theirs), addedMb: highest - before };
}

function beside(name: string, { ours, theirs }: Both, againstName: string): Figure {
  return {
    name,
    unit: "records/s",
    ours: (ROWS * 1_000) / ours,
    against: (ROWS * 1_000) / theirs,
    againstName,
    kind: "ratio",
    goal: 0.5,
  };
}

async function hourFigure(query: QueryService): Promise<Figure> {
  const times: number[] = [];
  for (let at = 0; at < HOURS_ASKED; at += 1) {
    times.push(await timeOf(query, `${GROUP} where vtime >= ${lastHourMs()} group by level, at limit -1`));
  }
  return most("p95 of the same over the last hour", "ms", quantile(times, 0.95), HOUR_MAX_MS);
}

/** Processor time of this process in ms; other load on the machine does not count. */
async function processorMsOf(query: QueryService, mql: string): Promise<number> {
  const before = process.cpuUsage();
  await timeOf(query, mql);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** Processor time that each operator adds to the sum of a column. */
async function operatorFigure(query: QueryService): Promise<Figure> {
  const added: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1)
    added.push((await processorMsOf(query, COMPUTED)) - (await processorMsOf(query, PLAIN)));
  return most(
    "an operator of an expression, per record",
    "us",
    (median(added) * 1_000) / ROWS / OPERATORS,
    OPERATOR_MAX_US,
  );
}

/** Calls of other users one after the other, alone and while the whole class is grouped repeatedly. */
async function besideFigure(query: QueryService): Promise<Figure> {
  const call = `select took from ${CLASS} where vtime >= ${lastHourMs()} limit 20`;
  const calls = async (): Promise<number> => {
    const times: number[] = [];
    for (let at = 0; at < CALLS; at += 1) times.push(await timeOf(query, call));
    return quantile(times, 0.95);
  };
  await calls();
  const alone = await calls();
  let isOver = false;
  const grouping = async (): Promise<void> => {
    while (!isOver) await timeOf(query, GROUP_ALL);
  };
  const grouped = grouping();
  const during = await calls();
  isOver = true;
  await grouped;
  return most("p95 of calls beside a group of all records", "ms", during, 2 * alone, "twice that alone");
}

function most(name: string, unit: string, ours: number, against: number, againstName = "the limit"): Figure {
  return { name, unit, ours, against, againstName, kind: "most", goal: 1 };
}
