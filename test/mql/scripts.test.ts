import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ObjectService } from "../../controller/areas/objects/index.ts";
import { AGGREGATES } from "../../controller/areas/query/expressions/aggregates/aggregate.ts";
import { DECLARED_OTHERS } from "../../controller/areas/query/expressions/declared.ts";
import { FUNCTIONS } from "../../controller/areas/query/expressions/functions/functions.ts";
import { QueryService, visibleObjects } from "../../controller/areas/query/index.ts";
import { WINDOW_FUNCTIONS } from "../../controller/areas/query/plan/windows.ts";
import { realClock } from "../helpers/time/clock.ts";
import { onCluster, openTestEngine } from "../helpers/engines/engine.ts";
import { MemoryObjects } from "../helpers/objects/memory/objects.ts";
import { testRuntime } from "../helpers/time/runtime.ts";
import { TIMES } from "../helpers/time/times.ts";
import { parseBlocks } from "./blocks.ts";
import { runScript } from "./script.ts";

const folder = import.meta.dirname;
const scripts = readdirSync(folder).filter((name) => name.endsWith(".test.mql"));
/** Script that the database in memory does not run, because it has no rules for definitions. */
const DEFINITIONS = "classes.test.mql";
const runtime = testRuntime(realClock);

test("every function, aggregate and window is called in a statement of a script", () => {
  const texts = scripts.flatMap((name) =>
    parseBlocks(readFileSync(join(folder, name), "utf8")).map(({ text }) => text),
  );
  const others = Object.keys(DECLARED_OTHERS);
  const calls = [...Object.keys(FUNCTIONS), ...AGGREGATES, ...others].map((name) => String.raw`\b${name}\(`);
  const windows = WINDOW_FUNCTIONS.map((name) => String.raw`\b${name}\([^()]*\) over \(`);
  const isCalled = (call: string) => texts.some((text) => new RegExp(call, "i").test(text));
  expect([...calls, ...windows].filter((call) => !isCalled(call))).toEqual([]);
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
    ...(onCluster && TIMES === 1 ? [] : [["with faults", { faultySeed: 7 }] as const]),
  ] as const)("over an engine, %s", async (_, options) => {
    await using engine = await openTestEngine(options);
    const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
    const batches = { stores: engine, controllers: { own: "one", has: () => true }, objects, runtime };
    await runScript(file, new QueryService({ objects, runtime, batches }));
    await objects.close();
  });
});
