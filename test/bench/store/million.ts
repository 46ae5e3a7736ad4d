import { ObjectService } from "../../../controller/areas/objects/index.ts";
import { QueryService, SearchService, visibleObjects } from "../../../controller/areas/query/index.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { openTestEngine } from "../../helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../helpers/time/runtime.ts";
import { quantile, type Bench, type Figure } from "../driver/frame.ts";
import { anonymousMb } from "../driver/process.ts";

const FEW = 10_000;
/** Number of objects at the end; a trial takes fewer. */
const MANY = Number(process.env["ODP_BENCH_OBJECTS"] ?? 1_000_000);
const CLASSES = 20;
/** Objects with one value of the indexed field. It does not depend on their total, so a query's result has one size. */
const PER_HOST = 20;
const ROWS_PER_BATCH = 1_000;
const BATCHES_AT_ONCE = 4;
const QUERIES = 500;
const QUERY_MAX_MS = 20;
const SEARCH_MAX_MS = 50;
/** Number of different words in notes. */
const DISKS = 977;
const SCAN_MAX_MB = 100;
const SAMPLE_MS = 20;
const ROOT = "/matrix/bench";
const principal = testPrincipal();

/** A tree of twenty classes that grows from ten thousand objects to a million, on the embedded engine. */
export const millionBench: Bench = {
  name: "million",
  async run() {
    const engine = await openTestEngine();
    const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
    const query = new QueryService({ objects, runtime: { clock: realClock } });
    const search = new SearchService({ objects, runtime: { clock: realClock } });
    try {
      await query.run(
        principal,
        `create class ${ROOT} (code varchar, host varchar, size int, note varchar, keys(code), index(host, size)) with autosearch=true`,
      );
      for (let at = 1; at < CLASSES; at += 1)
        await query.run(principal, `create class ${classOf(at)} (extra${at} varchar) with autosearch=true`);
      await fill(objects, 0, FEW);
      const few = await queryTimes(query, FEW);
      await fill(objects, FEW, MANY);
      const many = await queryTimes(query, MANY);
      return [...queryFigures(few, many), ...(await searchFigures(search)), await scanFigure(query)];
    } finally {
      await objects.close();
      await engine[Symbol.asyncDispose]();
    }
  },
};

/** Path of a class in three levels: the root, four below it, and the others below those. */
function classOf(at: number): string {
  if (at === 0) return ROOT;
  return at < 5 ? `${ROOT}/c${at}` : `${ROOT}/c${1 + (at % 4)}/d${at}`;
}

async function fill(objects: ObjectService, from: number, to: number): Promise<void> {
  let next = from;
  const filler = async (): Promise<void> => {
    for (let first = next; first < to; first = next) {
      next += ROWS_PER_BATCH;
      const rows = Array.from({ length: Math.min(ROWS_PER_BATCH, to - first) }, (_, at) => row(first + at));
      await objects.unrestricted.insert(principal, classOf((first / ROWS_PER_BATCH) % CLASSES), rows);
    }
  };
  await Promise.all(Array.from({ length: BATCHES_AT_ONCE }, filler));
}

/** Row of object `n`. The objects of one host are in many batches, and so in many classes. */
function row(n: number): Record<string, string | number> {
  return {
    code: `c${n}`,
    host: hostOf(n),
    size: n % 10_000,
    note: `note ${n % 5_000} of disk${n % DISKS} and rack${n % 101}`,
  };
}

/** Host of object `n`, shared by one object of each of `PER_HOST` batches in a row. */
function hostOf(n: number): string {
  const span = ROWS_PER_BATCH * PER_HOST;
  return n < FEW ? `few${n % (FEW / PER_HOST)}` : `h${Math.floor((n - FEW) / span)}-${(n - FEW) % ROWS_PER_BATCH}`;
}

async function queryTimes(query: QueryService, count: number): Promise<readonly number[]> {
  const mql = `select id, size from ${ROOT}/ where host = ? limit -1`;
  const times: number[] = [];
  for (let at = 0; at < QUERIES; at += 1) {
    const began = performance.now();
    const rows = await query.rows(principal, mql, [hostOf((at * 7_919) % count)]);
    times.push(performance.now() - began);
    if (rows.length === 0) throw new Error("the query finds nothing");
  }
  return times;
}

function queryFigures(few: readonly number[], many: readonly number[]): readonly Figure[] {
  const growth = quantile(many, 0.5) / quantile(few, 0.5);
  const ratio = Math.log(MANY) / Math.log(FEW);
  return [
    {
      name: `p95 of an indexed query over ${CLASSES} classes with ${MANY} objects`,
      unit: "ms",
      ours: quantile(many, 0.95),
      against: QUERY_MAX_MS,
      againstName: "the limit",
      kind: "most",
      goal: 1,
    },
    {
      name: `growth of its cost from ${FEW} objects`,
      unit: "times",
      ours: growth,
      against: ratio,
      againstName: "the ratio of the logarithms",
      kind: "most",
      goal: 1,
    },
  ];
}

/** Searches for a word, or for words with a beginning or an end, with a condition on a number, over all classes. */
async function searchFigures(search: SearchService): Promise<Figure[]> {
  return [
    await searchFigure(search, "by word", (at) => `disk${(at * 31) % DISKS}`),
    await searchFigure(search, "by word*", (at) => `disk${10 + (at % 80)}*`),
    await searchFigure(search, "by *word", (at) => `*isk${100 + (at % 800)}`),
  ];
}

async function searchFigure(search: SearchService, name: string, word: (at: number) => string): Promise<Figure> {
  const times: number[] = [];
  for (let at = 0; at < QUERIES; at += 1) {
    const began = performance.now();
    const { rows } = await search.search(principal, `#${ROOT}/: | ${word(at)} | size>=5000 | top 20`);
    let count = 0;
    for await (const page of rows) count += page.length;
    times.push(performance.now() - began);
    if (count === 0) throw new Error("the search finds nothing");
  }
  return {
    name: `p95 of a search ${name} and number with ${MANY} objects`,
    unit: "ms",
    ours: quantile(times, 0.95),
    against: SEARCH_MAX_MS,
    againstName: "the limit",
    kind: "most",
    goal: 1,
  };
}

/** Peak of the anonymous memory that a scan of everything adds. */
async function scanFigure(query: QueryService): Promise<Figure> {
  const before = anonymousMb(process.pid);
  let highest = before;
  const sampling = setInterval(() => (highest = Math.max(highest, anonymousMb(process.pid))), SAMPLE_MS);
  await query
    .rows(principal, `select count(*) from ${ROOT}/ where note like '*disk7*' and size > 17`)
    .finally(() => clearInterval(sampling));
  return {
    name: "anonymous memory added by a full scan with a filter",
    unit: "MB",
    ours: highest - before,
    against: SCAN_MAX_MB,
    againstName: "the limit",
    kind: "most",
    goal: 1,
  };
}
