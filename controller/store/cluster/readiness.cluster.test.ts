import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { NUMBER_SLOTS } from "../../../common/limits.ts";
import { etcdIsUp, singleEtcd, startEtcd } from "../../../deploy/local/etcd.ts";
import { defaultCacheDir, installEtcd } from "../../../deploy/local/install.ts";
import { stopDaemon, type Daemon } from "../../../deploy/local/process.ts";
import {
  clusterRuntime,
  clusterSettings,
  describeCluster,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../../../test/helpers/cluster.ts";
import { Cassandra } from "./cassandra.ts";
import { Etcd } from "./etcd.ts";
import { keyspaceOf, tenantDefinitions } from "./schema.ts";

describeCluster("readiness of a cluster", () => {
  let folder: string;
  let daemon: Daemon;
  let etcd: Etcd;
  let cassandra: Cassandra;
  let engine: TestClusterEngine;
  let keyspace: (tenant: string) => string;

  /** An etcd of its own, whose alarms trouble nobody else. */
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "odp-etcd-"));
    const program = await installEtcd(defaultCacheDir(), () => undefined);
    const member = await singleEtcd({ program, dir: folder });
    daemon = await startEtcd(member);
    await etcdIsUp(member, daemon);
    const etcdEndpoints = [`http://127.0.0.1:${String(member.ports.client)}`];
    etcd = new Etcd(etcdEndpoints, clusterRuntime);
    const settings = { ...clusterSettings(), etcdEndpoints };
    const { cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter } = settings;
    cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime: clusterRuntime });
    engine = await openTestClusterEngine({ tenants: ["matrix", "other"], settings });
    keyspace = (tenant) => keyspaceOf(engine.prefix, tenant);
  });
  beforeEach(() => engine.ready());
  afterAll(async () => {
    await engine?.[Symbol.asyncDispose]();
    await cassandra?.close();
    etcd?.close();
    if (daemon !== undefined) await stopDaemon(daemon, { now: true });
    await rm(folder, { recursive: true, force: true });
  });

  const notReady = (text: RegExp) =>
    expect(engine.ready()).rejects.toMatchObject({ code: "unavailable", message: expect.stringMatching(text) });

  test("an alarm of etcd is told by its name", async () => {
    const alarm = (action: "Activate" | "Deactivate") =>
      etcd.call("write", (call) => etcd.maintenance.alarm({ action, memberID: "1", alarm: "Nospace" }, call));
    await alarm("Activate");
    await notReady(/etcd .*NOSPACE/);
    await alarm("Deactivate");
    await engine.ready();
  });

  test("too few replicas for the consistency in use are told, though the node itself answers", async () => {
    const { cassandraDatacenter: datacenter } = clusterSettings();
    const replicas = (count: number) =>
      `ALTER KEYSPACE ${keyspace("system")} WITH replication = {'class': 'NetworkTopologyStrategy', '${datacenter}': ${String(count)}}`;
    await cassandra.define(replicas(3));
    await notReady(/Cassandra .*replica/i);
    await cassandra.define(replicas(1));
    await engine.ready();
  });

  test("a keyspace that is gone is told by its name, is no other tenant's trouble, and can be restored to", async () => {
    const there = (tenant: string) => engine.tenant(tenant).then(({ objects }) => objects.get([{ cid: 1, id: "a" }]));
    expect(await Promise.all(["matrix", "other"].map(there))).toEqual([[undefined], [undefined]]);
    await cassandra.define(`DROP KEYSPACE ${keyspace("matrix")}`);
    expect(await engine.ready()).toEqual({ lost: [{ tenant: "matrix", keyspace: keyspace("matrix") }] });
    await expect(there("matrix")).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/gone and has to be restored/),
    });
    expect(await there("other")).toEqual([undefined]);
    const { cassandraDatacenter: datacenter } = clusterSettings();
    const place = { keyspace: keyspace("matrix"), datacenter, replicationFactor: 1 };
    for (const definition of tenantDefinitions({ ...place, slots: NUMBER_SLOTS })) await cassandra.define(definition);
    expect(await engine.ready()).toEqual({ lost: [] });
    const { objects } = await engine.tenant("matrix");
    await objects.change([{ key: { cid: 1, id: "a" }, timeUs: 1, birth: true }]);
    expect(await there("matrix")).toMatchObject([{ key: { id: "a" } }]);
    await engine.dropTenant("matrix");
    expect(await engine.ready()).toEqual({ lost: [] });
  });
});
