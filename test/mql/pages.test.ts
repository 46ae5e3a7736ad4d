import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as limits from "../../common/limits.ts";
import { ObjectService } from "../../controller/areas/objects/index.ts";
import { QueryService } from "../../controller/areas/query/index.ts";
import { realClock } from "../helpers/clock.ts";
import { openTestEngine } from "../helpers/engine.ts";
import { testRuntime } from "../helpers/runtime.ts";
import { runPage } from "./script.ts";

const PAGE = "deploy/docs/mql-joins.md";
const runtime = testRuntime(realClock);

test("the examples of the page about joins answer what stands below them", async () => {
  await using engine = await openTestEngine();
  const objects = new ObjectService({ stores: engine, runtime });
  await runPage(PAGE, new QueryService({ objects, runtime }));
  await objects.close();
});

test("the page about joins states the bounds as they are", () => {
  const stated = [...readFileSync(PAGE, "utf8").matchAll(/^\| `(\w+)` \| ([\d,]+) \|/gm)].map(
    ([, name = "", most = ""]) => [name, Number(most.replaceAll(",", ""))],
  );
  expect(stated).toHaveLength(5);
  expect(limits).toMatchObject(Object.fromEntries(stated));
});
