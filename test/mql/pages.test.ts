import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import * as limits from "../../common/limits.ts";
import { ObjectService } from "../../controller/areas/objects/index.ts";
import { QueryService } from "../../controller/areas/query/index.ts";
import { realClock } from "../helpers/clock.ts";
import { openTestEngine } from "../helpers/engine.ts";
import { testRuntime } from "../helpers/runtime.ts";
import { runPage } from "./script.ts";

const PAGES = [
  { page: "deploy/docs/mql-joins.md", bounds: 5 },
  { page: "deploy/docs/mql-times.md", bounds: 2 },
];
const runtime = testRuntime(realClock);

describe.each(PAGES)("$page", ({ page, bounds }) => {
  test("its examples answer what stands below them", async () => {
    await using engine = await openTestEngine();
    const objects = new ObjectService({ stores: engine, runtime });
    await runPage(page, new QueryService({ objects, runtime }));
    await objects.close();
  });

  test("it states the bounds as they are", () => {
    const stated = [...readFileSync(page, "utf8").matchAll(/^\| `(\w+)` \| ([\d,]+) \|/gm)].map(
      ([, name = "", most = ""]) => [name, Number(most.replaceAll(",", ""))],
    );
    expect(stated).toHaveLength(bounds);
    expect(limits).toMatchObject(Object.fromEntries(stated));
  });
});
