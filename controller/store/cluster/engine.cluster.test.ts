import { ulid } from "ulid";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Clock } from "../../../common/time.ts";
import { KV_SWEEP_EVERY_MS, NUMBER_SLOTS } from "../../../common/limits.ts";
import { realClock, shiftedClock } from "../../../test/helpers/time/clock.ts";
import {
  clusterRuntime,
  clusterSettings,
  describeCluster,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../../../test/helpers/cluster/cluster.ts";
import { decodeStored, encodeJson } from "../format.ts";
import { Cassandra } from "./cassandra/cassandra.ts";
import { Etcd } from "./etcd/etcd.ts";
import { EtcdKvStore } from "./etcd/kv.ts";
import { TENANT_FORMAT } from "./registry.ts";
import { keyspaceOf } from "./schema.ts";

/** Tables are created and dropped twice, one definition after another; this is slow when other tests run. */
const TABLES_TWICE_MS = 180_000;

describeCluster("cluster engine", () => {
  let engine: TestClusterEngine;
  beforeAll(async () => {
    engine = await openTestClusterEngine({ tenants: ["matrix"] });
  });
  afterAll(async () => engine?.[Symbol.asyncDispose]());

  const key = { cid: 1, id: "a" };
  const birth = (timeUs: number) => ({ key, timeUs, birth: true as const, addTerms: ["term"] });

  test("a tenant that was never created is not found", async () => {
    await expect(engine.tenant("nobody")).rejects.toMatchObject({ code: "not_found" });
  });

  test.each(["", "Matrix", "1st", "a-b", "system", "x".repeat(49)])(
    "%j is refused as a tenant's name",
    async (name) => {
      await expect(engine.createTenant(name)).rejects.toMatchObject({ code: "invalid" });
      await expect(engine.tenant(name)).rejects.toMatchObject({ code: "invalid" });
    },
  );

  test("creating a tenant again keeps what is in it", async () => {
    const { objects } = await engine.tenant("matrix");
    await objects.change([birth(10)]);
    await engine.createTenant("matrix");
    expect((await objects.get([key]))[0]).toMatchObject({ birthUs: 10 });
  });

  test(
    "a dropped tenant is gone with all it held, dropping it again is fine, and under the same name a new one begins empty",
    async () => {
      const name = "n".repeat(48);
      await engine.createTenant(name);
      const before = await engine.tenant(name);
      await before.objects.change([birth(10)]);
      await before.kv.put("key", Uint8Array.of(1));
      await engine.dropTenant(name);
      await engine.dropTenant(name);
      await expect(engine.tenant(name)).rejects.toMatchObject({ code: "not_found" });
      await engine.createTenant(name);
      const after = await engine.tenant(name);
      expect((await after.objects.get([key]))[0]).toBeUndefined();
      expect((await after.objects.find({ terms: ["term"] }, { limit: 10 })).items).toEqual([]);
      expect(await after.kv.get("key")).toBeUndefined();
      await after.objects.change([birth(5)]);
      expect((await after.objects.get([key]))[0]).toMatchObject({ birthUs: 5 });
    },
    TABLES_TWICE_MS,
  );

  test("a tenant that is released is closed here and has all it held when it is asked for again", async () => {
    const before = await engine.tenant("matrix");
    await before.kv.put("kept", Uint8Array.of(1));
    await engine.releaseTenant("matrix");
    await engine.releaseTenant("matrix");
    const after = await engine.tenant("matrix");
    expect(after).not.toBe(before);
    expect((await after.kv.get("kept"))?.value).toEqual(Uint8Array.of(1));
  });

  test("the system's store is there without being created, and apart from every tenant's", async () => {
    const system = await engine.system();
    await system.kv.put("only here", Uint8Array.of(1));
    expect(await (await engine.tenant("matrix")).kv.get("only here")).toBeUndefined();
    expect((await (await engine.system()).kv.get("only here"))?.value).toEqual(Uint8Array.of(1));
  });

  test("an expired entry that is not read goes by a sweep", async () => {
    const { kv } = await engine.tenant("matrix");
    await kv.put("brief", Uint8Array.of(1), { expiresAtMs: realClock.nowMs() + 60_000 });
    const { revision } = await kv.list("brief");
    const soon = (delayMs: number) => (delayMs === KV_SWEEP_EVERY_MS ? 1 : delayMs);
    const after: Clock["after"] = (delayMs, callback) => realClock.after(soon(delayMs), callback);
    const clock = { ...shiftedClock(realClock, 120_000), after };
    await using second = await openTestClusterEngine({ prefix: engine.prefix, tenants: ["matrix"], clock });
    await second.tenant("matrix");
    const abort = new AbortController();
    for await (const events of kv.watch("brief", { sinceRevision: revision, signal: abort.signal })) {
      expect(events).toMatchObject([{ kind: "delete", key: "brief" }]);
      abort.abort();
    }
    expect(await kv.get("brief")).toBeUndefined();
  });

  test("which of two records of one id stands does not follow from the clocks of the controllers that append them", async () => {
    const { objects } = await engine.tenant("matrix");
    const clock = shiftedClock(realClock, -20_000);
    await using second = await openTestClusterEngine({ prefix: engine.prefix, tenants: ["matrix"], clock });
    const behind = (await second.tenant("matrix")).objects;
    const ids = [ulid(), ulid()];
    const expiresAtMs = realClock.nowMs() + 600_000;
    const record = (at: number, value: number) => {
      return { cid: 2, id: ids[at] ?? "", value: Uint8Array.of(value), terms: [], expiresAtMs };
    };
    for (const at of [0, 1]) await Promise.all([objects.append([record(at, at)]), behind.append([record(at, 1 - at)])]);
    const standing = await objects.getRecords([record(0, 0), record(1, 0)]);
    expect(standing[0]?.value).toBeDefined();
    expect(standing[0]?.value).toEqual(standing[1]?.value);
  });

  test("a tenant of format 5, with fewer slots of numbers and no ends, has all of them when it is opened, and what it had", async () => {
    const { etcdEndpoints, cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter } = clusterSettings();
    const cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime: clusterRuntime });
    const etcd = new Etcd(etcdEndpoints, clusterRuntime);
    const kv = new EtcdKvStore(etcd, `${engine.prefix}/installation/`);
    const keyspace = keyspaceOf(engine.prefix, "matrix");
    const last = NUMBER_SLOTS - 1;
    const old = { key: { cid: 2, id: "old" }, timeUs: 10, birth: true as const, numbers: new Map([[1, 7]]) };
    await (await engine.tenant("matrix")).objects.change([old]);
    await engine.releaseTenant("matrix");
    await cassandra.define(`DROP INDEX ${keyspace}.present_n${last}`);
    await cassandra.define(`DROP INDEX ${keyspace}.present_ends`);
    for (const column of [`n${last}`, "ends"]) await cassandra.define(`ALTER TABLE ${keyspace}.present DROP ${column}`);
    await kv.put("tenant/matrix", encodeJson({ format: 5, replicationFactor: 1 }));
    const { objects } = await engine.tenant("matrix");
    const timeUs = realClock.nowMs() * 1_000;
    const endsAtMs = realClock.nowMs() + 600_000;
    await objects.change([
      { key: { cid: 2, id: "new" }, timeUs, birth: true, numbers: new Map([[last, 7]]), endsAtMs },
    ]);
    for (const [slot, id, end] of [
      [1, "old", undefined],
      [last, "new", endsAtMs],
    ] as const)
      expect((await objects.find({ terms: [], ranges: [{ slot, from: 7, to: 7 }] }, { limit: 5 })).items).toMatchObject(
        [{ key: { cid: 2, id }, endsAtMs: end }],
      );
    expect(await kv.get("tenant/matrix").then((entry) => entry && decodeStored(entry.value))).toMatchObject({
      format: TENANT_FORMAT,
    });
    const indexes = async (of: string): Promise<number> => {
      const query = `SELECT index_name FROM system_schema.indexes WHERE keyspace_name = '${of}' AND table_name = 'present'`;
      return (await cassandra.read({ query, params: [] }, cassandra.deadline())).length;
    };
    expect(await indexes(keyspace)).toBe(NUMBER_SLOTS + 2);
    // The installation itself keeps only records, so creating it takes as little time as possible.
    await engine.system();
    expect(await indexes(keyspaceOf(engine.prefix, "system"))).toBe(1);
    kv.close();
    etcd.close();
    await cassandra.close();
  });

  test("a tenant of another format is refused by name, and is what it was", async () => {
    const etcd = new Etcd(clusterSettings().etcdEndpoints, clusterRuntime);
    const kv = new EtcdKvStore(etcd, `${engine.prefix}/installation/`);
    for (const format of [4, TENANT_FORMAT + 1]) {
      await kv.put("tenant/strange", encodeJson({ format, replicationFactor: 1 }));
      await expect(engine.tenant("strange")).rejects.toMatchObject({
        code: "unavailable",
        message: expect.stringContaining(`format ${format}`),
      });
    }
    await kv.delete("tenant/strange");
    kv.close();
    etcd.close();
  });

  test("it is ready and names its nodes", async () => {
    await engine.ready();
    const nodes = await engine.nodes();
    expect(nodes.length).toBeGreaterThan(0);
    expect(nodes[0]).toMatchObject({
      isup: true,
      hostid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      rack: expect.any(String),
      port: expect.any(Number),
    });
  });
});
