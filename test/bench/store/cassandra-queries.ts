import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, types } from "cassandra-driver";
import { ObjectService } from "../../../controller/areas/objects/index.ts";
import { QueryService, visibleObjects } from "../../../controller/areas/query/index.ts";
import { openClusterEngine } from "../../../controller/store/cluster/index.ts";
import { startLocalCluster, type ClusterSettings } from "../../../deploy/local/cluster.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { testPrincipal, testRuntime } from "../../helpers/time/runtime.ts";
import { driverCalls, repeatCalls, type DriverCall } from "./driver-statements.ts";
import { inTurns, median, perSecond, type Bench, type Figure } from "../driver/frame.ts";

const ROWS = 2_000;
const HOSTS = 100;
/** Number of different operations whose statements the bare driver repeats. */
const SAMPLES = 100;
const PER_ROUND = 500;
const AT_ONCE = 16;
const ALONE = 100;
const THROUGHPUT_GOAL = 0.6;
const LATENCY_MAX = 1.5;
const CLASS = "/matrix/bench/row";
const principal = testPrincipal();

/** MQL on one Cassandra node beside the bare driver that repeats exactly the same statements. */
export const cassandraQueriesBench: Bench = {
  name: "cassandra-queries",
  async run() {
    const dir = await mkdtemp(join(tmpdir(), "odp-bench-"));
    const local = await startLocalCluster({ dir, progress: (line) => console.log(`  ${line}`) });
    const runtime = testRuntime(realClock);
    const engine = await openClusterEngine({ ...local.settings, prefix: "bench", runtime });
    const client = bareClient(local.settings);
    const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
    try {
      await engine.createTenant("matrix");
      const query = new QueryService({ objects, runtime });
      await query.run(
        principal,
        `create class ${CLASS} (code varchar, host varchar, state varchar, note varchar, keys(code), index(host, state))`,
      );
      await perSecond(ROWS / 20, AT_ONCE, (at) =>
        objects.unrestricted.insert(
          principal,
          CLASS,
          Array.from({ length: 20 }, (_, index) => row(at * 20 + index)),
        ),
      );
      const figures: Figure[] = [];
      for (const operation of operations(query)) figures.push(...(await measure(operation, client)));
      return figures;
    } finally {
      await objects.close();
      await client.shutdown();
      await engine.close();
      await local.stop({ now: true });
      await rm(dir, { recursive: true, force: true });
    }
  },
};

interface Operation {
  readonly name: string;
  readonly ours: (n: number) => Promise<unknown>;
}

function operations(query: QueryService): readonly Operation[] {
  let made = ROWS;
  const names = Object.keys(row(0));
  return [
    {
      name: "select by id",
      ours: (n) => query.rows(principal, `select * from ${CLASS} where id = ?`, [`row:c${n % ROWS}`]),
    },
    {
      name: "select 20 by an indexed field",
      ours: (n) => query.rows(principal, `select * from ${CLASS} where host = ? limit 20`, [`h${n % HOSTS}`]),
    },
    {
      name: "insert with two indexes",
      ours: () =>
        query.rows(
          principal,
          `insert into ${CLASS} (${names.join(", ")}) values (?, ?, ?, ?)`,
          Object.values(row(made++)),
        ),
    },
  ];
}

function row(n: number): Record<string, string> {
  return { code: `c${n}`, host: `h${n % HOSTS}`, state: `s${n % 5}`, note: `a note of some length about ${n}` };
}

async function measure({ name, ours }: Operation, client: Client): Promise<readonly Figure[]> {
  const samples: (readonly DriverCall[])[] = [];
  for (let n = 0; n < SAMPLES; n += 1) samples.push(await driverCalls(() => ours(n)));
  const theirs = (n: number): Promise<void> => repeatCalls(client, samples[n % SAMPLES] ?? []);
  const statements = median(samples.map((calls) => calls.length));
  const rates = await inTurns(
    () => perSecond(PER_ROUND, AT_ONCE, ours),
    () => perSecond(PER_ROUND, AT_ONCE, theirs),
  );
  const times = await inTurns(
    () => latencyMs(ours),
    () => latencyMs(theirs),
  );
  const about = `${name} (${statements} statement${statements === 1 ? "" : "s"})`;
  return [
    { name: about, unit: "calls/s", ...rates, againstName: "the bare driver", kind: "ratio", goal: THROUGHPUT_GOAL },
    {
      name: `${about}, alone`,
      unit: "ms",
      ours: times.ours,
      against: LATENCY_MAX * times.against,
      againstName: `${LATENCY_MAX} times the bare driver`,
      kind: "most",
      goal: 1,
    },
  ];
}

/** Median time in ms of calls made one after the other. */
async function latencyMs(call: (n: number) => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < ALONE; n += 1) {
    const began = performance.now();
    await call(n);
    times.push(performance.now() - began);
  }
  return median(times);
}

/** Client that reads values in the same form as the engine's client. */
function bareClient(settings: ClusterSettings): Client {
  const [host = "", port = "9042"] = (settings.cassandraContactPoints[0] ?? "").split(":");
  return new Client({
    contactPoints: [host],
    localDataCenter: settings.cassandraDatacenter,
    protocolOptions: { port: Number(port) },
    queryOptions: { consistency: types.consistencies.localQuorum },
    encoding: { map: Map, useBigIntAsLong: true },
  });
}
