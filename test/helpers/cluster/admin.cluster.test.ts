import { afterAll, beforeAll, expect, test } from "vitest";
import { all, text } from "../../../controller/store/contract/harness.ts";
import { ClusterAdmin } from "./admin.ts";
import { clusterSettings, describeCluster, openTestClusterEngine, type TestClusterEngine } from "./cluster.ts";

const KEY = { cid: 1_000, id: "a" };
const OTHER = { cid: 1_000, id: "b" };
const NEAR = "near";

describeCluster("an installation that is emptied for the next test", () => {
  let engine: TestClusterEngine;
  let admin: ClusterAdmin;
  beforeAll(async () => {
    engine = await openTestClusterEngine({ tenants: ["matrix"] });
    admin = await ClusterAdmin.connect(clusterSettings());
  });
  afterAll(async () => {
    await admin?.close();
    await engine?.[Symbol.asyncDispose]();
  });

  const empty = (): Promise<void> =>
    admin.empty(engine.prefix, { kept: ["matrix", "system"], touched: new Set(["matrix"]) });
  const write = async (timeUs: number): Promise<void> => {
    const { objects } = await engine.tenant("matrix");
    await objects.change([{ key: OTHER, timeUs, birth: true }]);
    const edges = [{ type: NEAR, to: OTHER }];
    await objects.change([{ key: KEY, timeUs, birth: true, version: Buffer.from("v"), addEdges: edges }]);
  };

  test("hides no write with an earlier time, though the former test removed all it wrote", async () => {
    const nowUs = Date.now() * 1_000;
    await write(nowUs);
    const { objects } = await engine.tenant("matrix");
    for (const key of [KEY, OTHER])
      await objects.change([{ key, timeUs: nowUs + 1, death: true, forgetHistory: true }]);
    await empty();
    await write(nowUs - 3_600_000_000);
    const versions = await all(4, (page) => objects.history(KEY, {}, page));
    expect(versions.map(({ value }) => text(value))).toEqual(["v"]);
    const edges = await all(4, (page) => objects.edges(OTHER, "in", page));
    expect(edges).toHaveLength(1);
  });
});
