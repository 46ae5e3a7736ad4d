import { afterAll, beforeAll, expect, test } from "vitest";
import {
  clusterRuntime,
  clusterSettings,
  describeCluster,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../../../../test/helpers/cluster/cluster.ts";
import { all, text, uniqueCid } from "../../contract/harness.ts";
import { Cassandra } from "../cassandra/cassandra.ts";
import { keyspaceOf } from "../schema.ts";

const DAY_US = 86_400_000_000;
const DAYS = 6;
const PER_DAY = 3;
const YEAR_MS = 365 * 86_400_000;

describeCluster("versions that are kept for a time", () => {
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

  test("are listed by the days in which they end, and for ever only on the last day and where one stays", async () => {
    const { objects } = await engine.tenant("matrix");
    const key = { cid: uniqueCid(), id: "a" };
    const firstUs = Math.floor((Date.now() * 1_000) / DAY_US) * DAY_US - DAYS * DAY_US;
    const endVersionsAtMs = Date.now() + YEAR_MS;
    for (let n = 0; n < DAYS * PER_DAY; n += 1) {
      const timeUs = firstUs + Math.floor(n / PER_DAY) * DAY_US + n;
      const stays = n === PER_DAY ? { versionStays: true as const } : {};
      const version = Buffer.from(`v${n}`);
      await objects.change([{ key, timeUs, birth: true, version, endVersionsAtMs, ...stays }]);
    }
    const keyspace = keyspaceOf(engine.prefix, "matrix");
    const query = `SELECT day, until FROM ${keyspace}.version_days WHERE cid = ? AND id = ?`;
    const rows = await cassandra.read({ query, params: [key.cid, key.id] }, cassandra.deadline());
    const firstDay = firstUs / DAY_US;
    const endDay = Math.floor((endVersionsAtMs * 1_000) / DAY_US) + 1;
    const daysOf = (wanted: (until: number) => boolean): number[] =>
      rows.filter(({ until }) => wanted(Number(until))).map(({ day }) => Number(day) - firstDay);
    expect(daysOf((until) => until === endDay)).toEqual([5, 4, 3, 2, 1, 0]);
    expect(daysOf((until) => until > endDay)).toEqual([5, 1]);
    const kept = await all(4, (page) => objects.history(key, {}, page));
    expect(kept.map(({ value }) => text(value))).toEqual(
      Array.from({ length: DAYS * PER_DAY }, (_, n) => `v${n}`).reverse(),
    );
  });
});
