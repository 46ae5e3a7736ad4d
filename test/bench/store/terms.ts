import { ObjectService } from "../../../controller/areas/objects/index.ts";
import { QueryService, visibleObjects } from "../../../controller/areas/query/index.ts";
import { openClusterEngine } from "../../../controller/store/cluster/index.ts";
import type { Engine } from "../../../controller/store/engine.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { openTestEngine } from "../../helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../helpers/time/runtime.ts";
import { median, type Bench, type Figure } from "../driver/frame.ts";

/** Number of objects; a trial takes fewer. */
const OBJECTS = Number(process.env["ODP_BENCH_OBJECTS"] ?? 100_000);
const ROWS_PER_BATCH = 100;
const BATCHES_AT_ONCE = 2;
const ROUNDS = 7;
const ROOT = "/matrix/bench";
const principal = testPrincipal();

/** Queries by two indexed values, each of a tenth of the objects, and counts; on embedded or a configured cluster. */
export const termsBench: Bench = {
  name: "terms",
  async run() {
    const engine = await openEngine();
    const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
    const query = new QueryService({ objects, runtime: { clock: realClock } });
    const rows = (mql: string) => query.rows(principal, mql);
    const count = (condition: string) => rows(`select count(*) as n from ${ROOT} ${condition}`);
    try {
      await rows(
        `create class ${ROOT} (code varchar, tens varchar, units varchar, both varchar, note varchar, keys(code), index(tens, units, both))`,
      );
      await fill(objects);
      return [
        await beside("objects by two values of a tenth each", "five times the same by one value", 5, [
          () => rows(`select * from ${ROOT} where tens = 't3' and units = 'u7' limit -1`),
          () => rows(`select * from ${ROOT} where both = 'b37' limit -1`),
        ]),
        await beside("count(*) of a tenth by its value", "the same objects answered", 1, [
          () => count("where tens = 't3'"),
          () => rows(`select * from ${ROOT} where tens = 't3' limit -1`),
        ]),
        await beside("count(*) by two values of a tenth each", "five times the same objects answered by one value", 5, [
          () => count("where tens = 't3' and units = 'u7'"),
          () => rows(`select * from ${ROOT} where both = 'b37' limit -1`),
        ]),
        await beside("count(*) of a class", "the ids of its objects answered", 1, [
          () => count(""),
          () => rows(`select id from ${ROOT} limit -1`),
        ]),
        await beside("counts per value of an indexed column", "the ids of all objects answered", 1, [
          () => rows(`select tens, count(*) as n from ${ROOT} group by tens`),
          () => rows(`select id from ${ROOT} limit -1`),
        ]),
      ];
    } finally {
      await objects.close();
      await engine[Symbol.asyncDispose]();
    }
  },
};

async function openEngine(): Promise<Engine & AsyncDisposable> {
  const { env } = process;
  if (env["ODP_STORE"] !== "cluster") return openTestEngine();
  const engine = await openClusterEngine({
    etcdEndpoints: [env["ODP_ETCD_ENDPOINTS"] ?? ""],
    cassandraContactPoints: [env["ODP_CASSANDRA_CONTACT_POINTS"] ?? ""],
    cassandraDatacenter: env["ODP_CASSANDRA_DATACENTER"] ?? "datacenter1",
    prefix: `bench${process.pid}`,
    runtime: testRuntime(realClock),
  });
  await engine.createTenant("matrix");
  return Object.assign(engine, {
    async [Symbol.asyncDispose]() {
      await engine.dropTenant("matrix");
      await engine.close();
    },
  });
}

async function fill(objects: ObjectService): Promise<void> {
  let next = 0;
  const filler = async (): Promise<void> => {
    for (let first = next; first < OBJECTS; first = next) {
      next += ROWS_PER_BATCH;
      await objects.unrestricted.insert(
        principal,
        ROOT,
        Array.from({ length: ROWS_PER_BATCH }, (_, at) => row(first + at)),
      );
    }
  };
  await Promise.all(Array.from({ length: BATCHES_AT_ONCE }, filler));
}

function row(n: number): Record<string, string> {
  const [units, tens] = [n % 10, Math.floor(n / 10) % 10];
  return {
    code: `c${n}`,
    tens: `t${tens}`,
    units: `u${units}`,
    both: `b${tens}${units}`,
    note: "some forty characters of text, no more",
  };
}

type Work = () => Promise<readonly unknown[]>;

/** Medians in ms, in turns, after a round that is not counted. Ours may take at most `times` as long as the other. */
async function beside(
  name: string,
  againstName: string,
  times: number,
  [ours, other]: readonly [Work, Work],
): Promise<Figure> {
  const taking: { readonly ours: number[]; readonly other: number[] } = { ours: [], other: [] };
  for (let round = 0; round <= ROUNDS; round += 1) {
    taking.other.push(await taken(other));
    taking.ours.push(await taken(ours));
  }
  const [oursMs, otherMs] = [median(taking.ours.slice(1)), median(taking.other.slice(1))];
  return {
    name: `${name} (of ${OBJECTS})`,
    unit: "ms",
    ours: oursMs,
    against: times * otherMs,
    againstName,
    kind: "most",
    goal: 1,
  };
}

async function taken(work: Work): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
