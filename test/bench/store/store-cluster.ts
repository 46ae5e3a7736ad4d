import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, types } from "cassandra-driver";
import { openClusterEngine } from "../../../controller/store/cluster/index.ts";
import type { EntityKey, ObjectStore } from "../../../controller/store/objects.ts";
import { startLocalCluster, type ClusterSettings } from "../../../deploy/local/cluster.ts";
import { testRuntime } from "../../helpers/time/runtime.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { driverCalls, type DriverCall } from "./driver-statements.ts";
import { inTurns, median, perSecond, type Bench, type Figure } from "../driver/frame.ts";
import { scrubFigure } from "./scrub.ts";
import { benchCells, benchChange, benchTerms, BENCH_CID } from "./rows.ts";

const ROWS_PER_ROUND = 3_000;
const FINDS_PER_ROUND = 500;
const AT_ONCE = 64;
/** More than `AT_ONCE`, because one object has several statements in flight. */
const STATEMENTS_AT_ONCE = 2 * AT_ONCE;
const FINDS_AT_ONCE = 16;
const FOUND_MAX = 20;
const REWRITES = 150;
const WORDS_PER_REWRITE = 800;
const READS_ALONE = 50;
const EDGES = Number(process.env.ODP_BENCH_EDGES ?? 100_000);
const LEAVING = Number(process.env.ODP_BENCH_AGE ?? 100_000);
const STAYING = 100;
const EDGES_PER_CHANGE = 50;
const EDGES_PER_PAGE = 100;

/**
 * ObjectStore on one Cassandra node beside the bare driver that writes the same rows into one table with an index over
 * sets of terms. Also reads of an object that was changed for years, beside a fresh one.
 */
export const clusterStoreBench: Bench = {
  name: "store-cluster",
  async run() {
    const dir = await mkdtemp(join(tmpdir(), "odp-bench-"));
    const local = await startLocalCluster({ dir, progress: (line) => console.log(`  ${line}`) });
    const engine = await openClusterEngine({ ...local.settings, prefix: "bench", runtime: testRuntime(realClock) });
    const bare = await BareTable.open(local.settings);
    try {
      await engine.createTenant("matrix");
      const { objects } = await engine.tenant("matrix");
      return [
        await putFigure(objects, bare),
        await sameStatementsFigure(objects, bare),
        await findFigure(objects, bare),
        await ageFigure(objects),
        await edgesFigure(objects),
        await leftFigure(objects),
        await scrubFigure(engine, testRuntime(realClock)),
      ];
    } finally {
      await bare.close();
      await engine.close();
      await local.stop({ now: true });
      await rm(dir, { recursive: true, force: true });
    }
  },
};

async function putFigure(objects: ObjectStore, bare: BareTable): Promise<Figure> {
  let ours = 0;
  let theirs = 0;
  const measured = await inTurns(
    () => perSecond(ROWS_PER_ROUND, AT_ONCE, () => objects.change([benchChange(ours, 1_700_000_000_000_000 + ours++)])),
    () => perSecond(ROWS_PER_ROUND, AT_ONCE, () => bare.put(theirs++)),
  );
  return {
    name: "put with 13 terms",
    unit: "objects/s",
    ...measured,
    againstName: "the bare driver",
    kind: "ratio",
    goal: 0.6,
  };
}

async function sameStatementsFigure(objects: ObjectStore, bare: BareTable): Promise<Figure> {
  let n = 1_000_000;
  let made: readonly DriverCall[] = [];
  const ours = async (): Promise<number> => {
    let rate = 0;
    made = await driverCalls(async () => {
      const put = (): Promise<void> => objects.change([benchChange(n, 1_700_000_000_000_000 + n++)]);
      rate = await perSecond(ROWS_PER_ROUND, AT_ONCE, put);
    });
    return rate;
  };
  const again = async (): Promise<number> => {
    if (made.length === 0) await ours();
    const rate = await perSecond(made.length, STATEMENTS_AT_ONCE, (at) => bare.call(made[at]!));
    return (rate * ROWS_PER_ROUND) / made.length;
  };
  const measured = await inTurns(ours, again);
  return {
    name: "put with 13 terms",
    unit: "objects/s",
    ...measured,
    againstName: "the bare driver making the same statements again",
    kind: "ratio",
    goal: 0.6,
  };
}

async function findFigure(objects: ObjectStore, bare: BareTable): Promise<Figure> {
  let n = 0;
  const term = (): string => `a1=host-${(n += 7) % 1_000}`;
  const measured = await inTurns(
    () => perSecond(FINDS_PER_ROUND, FINDS_AT_ONCE, () => objects.find({ terms: [term()] }, { limit: FOUND_MAX })),
    () => perSecond(FINDS_PER_ROUND, FINDS_AT_ONCE, () => bare.find(term())),
  );
  return {
    name: `find ${FOUND_MAX} by one term`,
    unit: "queries/s",
    ...measured,
    againstName: "the bare driver",
    kind: "ratio",
    goal: 0.6,
  };
}

/** Medians in ms of reads by id and by an indexed value, for an object whose words all changed many times. */
async function ageFigure(objects: ObjectStore): Promise<Figure> {
  const aged = { cid: BENCH_CID + 1, id: "aged" };
  const fresh = { cid: BENCH_CID + 1, id: "fresh" };
  // Late writes are posted with the current time, and no removal of these times would cover them.
  const baseUs = Date.now() * 1_000;
  for (const key of [aged, fresh])
    await objects.change([{ key, timeUs: baseUs, birth: true, addTerms: [`a1=${key.id}`] }]);
  const words = (n: number): string[] => Array.from({ length: WORDS_PER_REWRITE }, (_, at) => `w${n}-${at}`);
  for (let n = 1; n <= REWRITES; n += 1)
    await objects.change([{ key: aged, timeUs: baseUs + n, addTerms: words(n), dropTerms: words(n - 1) }]);
  const { ours, against } = await readInTurns(aged, fresh, async (key) => {
    await objects.get([key]);
    await objects.find({ terms: [`a1=${key.id}`] }, { limit: FOUND_MAX });
  });
  return {
    name: `read by id and by value after ${REWRITES * WORDS_PER_REWRITE} words came and went`,
    unit: "ms",
    ours,
    against: 2 * against,
    againstName: "twice a fresh object",
    kind: "most",
    goal: 1,
  };
}

/** Medians in ms of finding the first objects with a value that very many others took and left. */
async function leftFigure(objects: ObjectStore): Promise<Figure> {
  const cid = BENCH_CID + 3;
  let lastUs = 0;
  const nextUs = (): number => (lastUs = Math.max(lastUs + 1, Date.now() * 1_000));
  const every = Math.max(1, Math.floor(LEAVING / STAYING));
  const staying = (id: string, term: string): Promise<void> =>
    objects.change([{ key: { cid, id }, timeUs: nextUs(), birth: true, addTerms: [term] }]);
  for (let n = 0; n < STAYING; n += 1) await staying(`fresh-${n}`, "a2=fresh");
  await perSecond(LEAVING, AT_ONCE, async (n) => {
    const key = { cid, id: `aged-${n}` };
    await staying(key.id, "a2=aged");
    if (n % every === 0) return;
    const leave = { key, timeUs: nextUs(), addTerms: ["a2=left"], dropTerms: ["a2=aged"] };
    await objects.change([leave]);
  });
  const read = async ({ id }: EntityKey): Promise<void> => {
    const { items } = await objects.find({ terms: [`a2=${id}`] }, { limit: FOUND_MAX });
    if (items.length < FOUND_MAX) throw new Error(`${items.length} were found`);
  };
  const { ours, against } = await readInTurns({ cid, id: "aged" }, { cid, id: "fresh" }, read);
  return {
    name: `first ${FOUND_MAX} of ${STAYING} with a value that ${LEAVING} took and left`,
    unit: "ms",
    ours,
    against: 2 * against,
    againstName: "twice those of a value that nobody left",
    kind: "most",
    goal: 1,
  };
}

/** Medians in ms of reading a page of edges each way and the object, beside an object with one page of edges. */
async function edgesFigure(objects: ObjectStore): Promise<Figure> {
  const cid = BENCH_CID + 2;
  const [aged, fresh] = [
    { cid, id: "hub" },
    { cid, id: "leaf" },
  ];
  let lastUs = 0;
  const nextUs = (): number => (lastUs = Math.max(lastUs + 1, Date.now() * 1_000));
  for (const [key, count] of [
    [aged, EDGES],
    [fresh, EDGES_PER_PAGE],
  ] as const) {
    await objects.change([{ key, timeUs: nextUs(), birth: true, addTerms: [`a1=${key.id}`] }]);
    await perSecond(count / EDGES_PER_CHANGE, 4, (batch) => {
      const others = Array.from({ length: EDGES_PER_CHANGE }, (_, at) => ({ cid, id: `${key.id}-${batch}-${at}` }));
      const addEdges = others.map((to) => ({ type: "to", to }));
      const sources = others.map((source) => ({
        key: source,
        timeUs: nextUs(),
        birth: true as const,
        addEdges: [{ type: "to", to: key }],
      }));
      return objects.change([{ key, timeUs: nextUs(), addEdges }, ...sources]);
    });
  }
  const { ours, against } = await readInTurns(aged, fresh, async (key) => {
    await objects.get([key]);
    await objects.find({ terms: [`a1=${key.id}`] }, { limit: FOUND_MAX });
    await objects.edges(key, "out", { limit: EDGES_PER_PAGE });
    await objects.edges(key, "in", { limit: EDGES_PER_PAGE });
  });
  return {
    name: `read by id and by value, and a page of edges each way, of ${EDGES} out and as many in`,
    unit: "ms",
    ours,
    against: 2 * against,
    againstName: "twice an object with a page of each",
    kind: "most",
    goal: 1,
  };
}

class BareTable {
  readonly #client: Client;

  private constructor(client: Client) {
    this.#client = client;
  }

  static async open(settings: ClusterSettings): Promise<BareTable> {
    const [host = "", port = "9042"] = (settings.cassandraContactPoints[0] ?? "").split(":");
    const client = new Client({
      contactPoints: [host],
      localDataCenter: settings.cassandraDatacenter,
      protocolOptions: { port: Number(port) },
      encoding: { map: Map, useBigIntAsLong: true },
    });
    await client.execute(
      "CREATE KEYSPACE bare WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    await client.execute(
      "CREATE TABLE bare.rows (cid int, id text, birth bigint, attrs map<text, blob>, terms set<text>, n0 double, n1 double, n2 double, PRIMARY KEY ((cid, id)))",
    );
    for (const column of ["terms", "n0", "n1", "n2"])
      await client.execute(`CREATE INDEX ON bare.rows (${column}) USING 'sai'`);
    return new BareTable(client);
  }

  call(made: DriverCall): Promise<unknown> {
    return made(this.#client);
  }

  put(n: number): Promise<unknown> {
    const values = [BigInt(n), benchCells(n), [...new Set(benchTerms(n))], n, BENCH_CID, `row-${n}`];
    return this.#client.execute(
      "UPDATE bare.rows SET birth = ?, attrs = attrs + ?, terms = terms + ?, n0 = ? WHERE cid = ? AND id = ?",
      values,
      {
        prepare: true,
        isIdempotent: true,
        consistency: types.consistencies.localQuorum,
      },
    );
  }

  find(term: string): Promise<unknown> {
    const options = {
      prepare: true,
      isIdempotent: true,
      fetchSize: FOUND_MAX,
      consistency: types.consistencies.localQuorum,
    };
    return this.#client.execute(`SELECT * FROM bare.rows WHERE terms CONTAINS ? LIMIT ${FOUND_MAX}`, [term], options);
  }

  async close(): Promise<void> {
    await this.#client.shutdown();
  }
}

/** Medians in ms. */
function readInTurns(aged: EntityKey, fresh: EntityKey, read: (key: EntityKey) => Promise<void>) {
  const medianOf = async (key: EntityKey): Promise<number> => {
    const times: number[] = [];
    for (let n = 0; n < READS_ALONE; n += 1) {
      const began = performance.now();
      await read(key);
      times.push(performance.now() - began);
    }
    return median(times);
  };
  return inTurns(
    () => medianOf(aged),
    () => medianOf(fresh),
  );
}
