import { test } from "vitest";
import { ObjectService } from "../../controller/areas/objects/index.ts";
import { realClock } from "../helpers/clock.ts";
import { openTestEngine } from "../helpers/engine.ts";
import { testRuntime } from "../helpers/runtime.ts";
import { compareMany, TIMEOUT_MS } from "./random.ts";

test.each([21, 22, 23, 24, 25])("over the embedded engine (seed %i)", { timeout: TIMEOUT_MS }, async (seed) => {
  await using engine = await openTestEngine();
  const objects = new ObjectService({ stores: engine, runtime: testRuntime(realClock) });
  await compareMany(objects, { seed, queries: 10_000, perWorld: 1_000 });
  await objects.close();
});
