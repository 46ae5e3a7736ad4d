import { afterAll, beforeAll, expect, test } from "vitest";
import { OBJECT_TOMBSTONE_KEEP_MS } from "../../../../common/limits.ts";
import {
  clusterRuntime,
  clusterSettings,
  describeCluster,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../../../../test/helpers/cluster/cluster.ts";
import type { EntityKey } from "../../objects.ts";
import { Cassandra } from "../cassandra/cassandra.ts";
import { keyspaceOf } from "../schema.ts";

const DAY_MS = 86_400_000;

describeCluster("the memory of a removal", () => {
  let engine: TestClusterEngine;
  let cassandra: Cassandra;
  beforeAll(async () => {
    engine = await openTestClusterEngine({ tenants: ["matrix"] });
    const { cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter } = clusterSettings();
    cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime: clusterRuntime });
  });
  afterAll(async () => {
    await cassandra?.close();
    await engine?.[Symbol.asyncDispose]();
  });

  async function keptMsOf({ cid, id }: EntityKey): Promise<number> {
    const query = `SELECT TTL(died) AS kept FROM ${keyspaceOf(engine.prefix, "matrix")}.present WHERE cid = ? AND id = ?`;
    const [row] = await cassandra.read({ query, params: [cid, id] }, cassandra.deadline());
    return Number(row?.kept) * 1_000;
  }

  /** As long as Cassandra keeps the tombstone of a removal, the tombstone may cover writes with earlier times. */
  test("lasts until the time of the removal is over, so that the next object of that name is written above it", async () => {
    const { objects } = await engine.tenant("matrix");
    const nowMs = clusterRuntime.clock.nowMs();
    for (const [id, aheadMs] of [
      ["now", 0],
      ["ahead", 1_000 * DAY_MS],
      ["beyond", 40 * 365 * DAY_MS],
    ] as const) {
      const key = { cid: 1, id };
      const timeUs = (nowMs + aheadMs) * 1_000;
      await objects.change([{ key, timeUs, birth: true }]);
      await objects.change([{ key, timeUs: timeUs + 1, death: true }]);
      const [trace] = await objects.trace([key]);
      expect(trace?.lastUs).toBe(timeUs + 1);
      const keptMs = await keptMsOf(key);
      expect(keptMs).toBeLessThanOrEqual(OBJECT_TOMBSTONE_KEEP_MS + aheadMs + 2_000);
      expect(keptMs).toBeGreaterThan(Math.min(OBJECT_TOMBSTONE_KEEP_MS + aheadMs, 20 * 365 * DAY_MS) - 60_000);
    }
  });
});
