import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ObjectService } from "../../controller/areas/objects/index.ts";
import { AGGREGATES } from "../../controller/areas/query/expressions/aggregate.ts";
import { FUNCTIONS } from "../../controller/areas/query/expressions/functions.ts";
import { QueryService } from "../../controller/areas/query/index.ts";
import { realClock } from "../helpers/clock.ts";
import { onCluster, openTestEngine } from "../helpers/engine.ts";
import { MemoryObjects } from "../helpers/memory-objects.ts";
import { testRuntime } from "../helpers/runtime.ts";
import { runScript } from "./script.ts";

const folder = import.meta.dirname;
const scripts = readdirSync(folder).filter((name) => name.endsWith(".test.mql"));
/** The database in memory has no rules for definitions. */
const DEFINITIONS = "classes.test.mql";
const runtime = testRuntime(realClock);

test("every function and every aggregate stands in a script", () => {
  const text = scripts.map((name) => readFileSync(join(folder, name), "utf8").toLowerCase()).join("\n");
  const others = ["coalesce", "cast", "now", "ago", "lag", "lead", "row_number", "rate"];
  const names = [...Object.keys(FUNCTIONS), ...AGGREGATES, ...others];
  expect(names.filter((name) => !text.includes(`${name}(`))).toEqual([]);
});

describe.each(scripts)("%s", (name) => {
  const file = join(folder, name);

  test.each(onCluster || name === DEFINITIONS ? [] : [false, true])(
    "over the database in memory, narrowing %s",
    async (narrows) => {
      const objects = new MemoryObjects({ nowMs: () => realClock.nowMs(), narrows });
      await runScript(file, new QueryService({ objects, runtime }));
    },
  );

  test.each([
    ["as it is", {}],
    ["with faults", { faultySeed: 7 }],
  ])("over an engine, %s", async (_, options) => {
    await using engine = await openTestEngine(options);
    const objects = new ObjectService({ stores: engine, runtime });
    const batches = { stores: engine, controllers: { own: "one", has: () => true }, objects, runtime };
    await runScript(file, new QueryService({ objects, runtime, batches }));
    await objects.close();
  });
});
