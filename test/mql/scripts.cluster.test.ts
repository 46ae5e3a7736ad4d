import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "vitest";
import { ObjectService } from "../../controller/areas/objects/index.ts";
import { QueryService } from "../../controller/areas/query/index.ts";
import { clusterRuntime, describeCluster, openTestClusterEngine } from "../helpers/cluster.ts";
import { runScript } from "./script.ts";

const folder = import.meta.dirname;
const scripts = readdirSync(folder).filter((name) => name.endsWith(".test.mql"));

describeCluster("MQL scripts over the cluster", () => {
  test.each(scripts)("%s", async (name) => {
    await using engine = await openTestClusterEngine();
    const objects = new ObjectService({ stores: engine, runtime: clusterRuntime });
    await runScript(join(folder, name), new QueryService({ objects, runtime: clusterRuntime }));
    await objects.close();
  });
});
