import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CLASSES_PER_TENANT_MAX } from "../../../common/limits.ts";
import { ObjectService } from "../../../controller/areas/objects/index.ts";
import { openClusterEngine } from "../../../controller/store/cluster/index.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import { startLocalCluster } from "../../../deploy/local/cluster.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { openTestEngine } from "../../helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../helpers/time/runtime.ts";
import { perSecond, type Bench, type Figure } from "../driver/frame.ts";
import { visibleObjects } from "../../../controller/areas/query/index.ts";

const ON_CASSANDRA = 500;
const ON_CASSANDRA_MAX_S = 30;
const SAMPLE = 200;
/** Leaves room for the root of the tenant and the parents of the other classes. */
const ON_EMBEDDED = CLASSES_PER_TENANT_MAX - 100;
const PARENTS = 50;
const START_MAX_MS = 2_000;
const LATE_GOAL = 0.5;
const principal = testPrincipal();

/** Time to create many classes, and to start a controller with them. */
export const classesBench: Bench = {
  name: "classes",
  async run() {
    return [await cassandraFigure(), ...(await embeddedFigures())];
  },
};

function service(stores: Stores): ObjectService {
  return new ObjectService({ visible: visibleObjects, stores, runtime: testRuntime(realClock) });
}

async function makeClass(objects: ObjectService, at: number): Promise<void> {
  const path = `/matrix/parent${at % PARENTS}/class${at}`;
  const columns = [
    { name: "host", type: "varchar" },
    { name: "size", type: "int" },
  ] as const;
  await objects.createClass(principal, { path, columns, indexes: ["host"], options: { keyMode: "manu" } });
  await objects.unrestricted.insert(principal, path, [{ id: "one", host: `h${at}`, size: at }]);
}

async function cassandraFigure(): Promise<Figure> {
  const dir = await mkdtemp(join(tmpdir(), "odp-bench-"));
  const local = await startLocalCluster({ dir, progress: (line) => console.log(`  ${line}`) });
  const engine = await openClusterEngine({ ...local.settings, prefix: "bench", runtime: testRuntime(realClock) });
  const objects = service(engine);
  try {
    await engine.createTenant("matrix");
    await objects.catalog(principal);
    const rate = await perSecond(ON_CASSANDRA, 1, (at) => makeClass(objects, at));
    const name = `${ON_CASSANDRA} classes with an index and an object each, one Cassandra node`;
    return {
      name,
      unit: "s",
      ours: ON_CASSANDRA / rate,
      against: ON_CASSANDRA_MAX_S,
      againstName: "the limit",
      kind: "most",
      goal: 1,
    };
  } finally {
    await objects.close();
    await engine.close();
    await local.stop({ now: true });
    await rm(dir, { recursive: true, force: true });
  }
}

async function embeddedFigures(): Promise<Figure[]> {
  const engine = await openTestEngine();
  try {
    const objects = service(engine);
    const early = await perSecond(SAMPLE, 1, (at) => makeClass(objects, at));
    await perSecond(ON_EMBEDDED - 2 * SAMPLE, 1, (at) => makeClass(objects, SAMPLE + at));
    const late = await perSecond(SAMPLE, 1, (at) => makeClass(objects, ON_EMBEDDED - SAMPLE + at));
    await objects.close();
    const name = `a class and an object, where there are ${ON_EMBEDDED} classes`;
    return [
      {
        name,
        unit: "classes/s",
        ours: late,
        against: early,
        againstName: "the rate where there are none",
        kind: "ratio",
        goal: LATE_GOAL,
      },
      {
        name: `the definitions of ${ON_EMBEDDED} classes are read`,
        unit: "ms",
        ours: await startMs(engine),
        against: START_MAX_MS,
        againstName: "the limit",
        kind: "most",
        goal: 1,
      },
    ];
  } finally {
    await engine[Symbol.asyncDispose]();
  }
}

async function startMs(stores: Stores): Promise<number> {
  const objects = service(stores);
  const started = performance.now();
  await objects.catalog(principal);
  const tookMs = performance.now() - started;
  await objects.close();
  return tookMs;
}
