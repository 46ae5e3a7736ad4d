import { expect, test } from "vitest";
import { ObjectService } from "../../controller/areas/objects/index.ts";
import { AGGREGATES } from "../../controller/areas/query/expressions/aggregates/aggregate.ts";
import { FUNCTIONS } from "../../controller/areas/query/expressions/functions/functions.ts";
import { WINDOW_FUNCTIONS } from "../../controller/areas/query/plan/windows.ts";
import { realClock } from "../helpers/time/clock.ts";
import { onCluster, openTestEngine } from "../helpers/engines/engine.ts";
import { MemoryObjects } from "../helpers/objects/memory/objects.ts";
import { testRuntime } from "../helpers/time/runtime.ts";
import { compareMany, TIMEOUT_MS } from "./random.ts";
import { visibleObjects } from "../../controller/areas/query/index.ts";

/** With `orderedMost`, ordered reads give up after a few rows. */
test.each(onCluster ? [] : [{ seed: 31 }, { seed: 2, orderedMost: 6 }])(
  "over the database in memory, narrowing as far as it can, by every function (%j)",
  { timeout: TIMEOUT_MS },
  async ({ seed, ...options }) => {
    const drawn = await compareMany(new MemoryObjects({ nowMs: () => 0, narrows: true, ...options }), {
      seed,
      queries: 500,
      perWorld: 250,
      canKeepVersions: false,
    });
    const known = [
      ...[...Object.keys(FUNCTIONS), "any", "coalesce", "cast"].map((name) => `computed ${name}`),
      ...AGGREGATES.map((name) => `call ${name}`),
      ...WINDOW_FUNCTIONS.map((name) => `window ${name}`),
    ];
    expect(known.filter((name) => !drawn.has(name))).toEqual([]);
  },
);

const ON_CLUSTER = [{ seed: 10, queries: 500 }];
/** 500 queries altogether; `npm run soak` compares `--times` as many. */
const EMBEDDED = [11, 12].map((seed) => ({ seed, queries: 250 }));

test.each(onCluster ? ON_CLUSTER : EMBEDDED)("over an engine (%j)", { timeout: TIMEOUT_MS }, ({ seed, queries }) =>
  overEngine({ seed, queries }),
);

/** Concurrent, because they mostly wait for calls that the engine delays. */
test.concurrent.each(onCluster ? [] : [16, 17])(
  "over an engine with faults (seed %i)",
  { timeout: TIMEOUT_MS },
  (seed) => overEngine({ seed, queries: 100, faultySeed: seed }),
);

async function overEngine({
  seed,
  queries,
  ...options
}: {
  readonly seed: number;
  readonly queries: number;
  readonly faultySeed?: number;
}): Promise<void> {
  await using engine = await openTestEngine(options);
  const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
  // One world for all queries on a cluster, because creating classes takes longer there.
  await compareMany(objects, { seed, queries, perWorld: onCluster ? queries : Math.min(queries, 250) });
  await objects.close();
}
