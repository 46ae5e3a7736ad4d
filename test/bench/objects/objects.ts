import { ObjectService } from "../../../controller/areas/objects/index.ts";
import { QueryService, visibleObjects } from "../../../controller/areas/query/index.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { openTestEngine } from "../../helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../helpers/time/runtime.ts";
import { BareLmdb, type BareRow } from "../store/bare-lmdb.ts";
import { inTurns, perSecond, type Bench, type Figure } from "../driver/frame.ts";

const ROWS_PER_ROUND = 10_000;
const ROWS_PER_BATCH = 500;
const BATCHES_AT_ONCE = 4;
const FINDS_PER_ROUND = 2_000;
const FINDS_AT_ONCE = 8;
const FOUND_MAX = 20;
const HOSTS = 500;
const TEXTS = 12;
const CLASS = "/matrix/bench/row";
const principal = testPrincipal();

/** Classes and MQL as a library, beside bare lmdb that does the same gets and puts. */
export const objectsBench: Bench = {
  name: "objects",
  async run() {
    const engine = await openTestEngine();
    const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
    const query = new QueryService({ objects, runtime: { clock: realClock } });
    const bare = await BareLmdb.open();
    try {
      const texts = Array.from({ length: TEXTS }, (_, at) => `t${at} varchar`).join(", ");
      await query.run(
        principal,
        `create class ${CLASS} (code varchar, host varchar, state varchar, ${texts}, keys(code), index(host, state))`,
      );
      return [await insertFigure(objects, bare), await selectFigure(query, bare)];
    } finally {
      await bare.close();
      await objects.close();
      await engine[Symbol.asyncDispose]();
    }
  },
};

async function insertFigure(objects: ObjectService, bare: BareLmdb): Promise<Figure> {
  let ours = 0;
  let theirs = 0;
  const batches = ROWS_PER_ROUND / ROWS_PER_BATCH;
  const measured = await inTurns(
    () =>
      perSecond(batches, BATCHES_AT_ONCE, () =>
        objects.unrestricted.insert(principal, CLASS, range(ours, (ours += ROWS_PER_BATCH)).map(row)),
      ),
    () => perSecond(batches, BATCHES_AT_ONCE, () => putBare(bare, range(theirs, (theirs += ROWS_PER_BATCH)))),
  );
  const perRow = { ours: measured.ours * ROWS_PER_BATCH, against: measured.against * ROWS_PER_BATCH };
  return {
    name: "bulk insert with a key and two indexes, durable",
    unit: "objects/s",
    ...perRow,
    againstName: "bare lmdb",
    kind: "ratio",
    goal: 0.6,
  };
}

/** Reads before each write, because an object with the same key may exist already. */
async function putBare(bare: BareLmdb, numbers: readonly number[]): Promise<void> {
  const rows = numbers.map(bareRow);
  await bare.put(rows.filter((one) => !bare.has(one.key)));
}

async function selectFigure(query: QueryService, bare: BareLmdb): Promise<Figure> {
  let n = 0;
  const next = (): string => `h${(n += 7) % HOSTS}`;
  const mql = `select * from ${CLASS} where host = ? limit ${FOUND_MAX}`;
  const measured = await inTurns(
    () => perSecond(FINDS_PER_ROUND, FINDS_AT_ONCE, () => query.rows(principal, mql, [next()])),
    () => perSecond(FINDS_PER_ROUND, FINDS_AT_ONCE, () => Promise.resolve(bare.find(`a18=${next()}`, FOUND_MAX))),
  );
  return {
    name: `prepared select of ${FOUND_MAX} by an indexed field`,
    unit: "queries/s",
    ...measured,
    againstName: "bare lmdb",
    kind: "ratio",
    goal: 0.4,
  };
}

function row(n: number): Record<string, string> {
  const texts = range(0, TEXTS).map((at) => [`t${at}`, `value ${at} ${n}`] as const);
  return { code: `c${n}`, host: `h${n % HOSTS}`, state: `s${n % 5}`, ...Object.fromEntries(texts) };
}

/** The same cells and terms as the area `objects` makes of such a row. */
function bareRow(n: number): BareRow {
  const values = Object.values(row(n));
  const cells = new Map(values.map((value, at) => [String(17 + at), Buffer.from(`\u0001${value}`)]));
  return { key: `7:c${n}`, cells, terms: ["c7", "s1", "s6", `a18=h${n % HOSTS}`, `a19=s${n % 5}`] };
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index);
}
