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
} from "../../../test/helpers/cluster/cluster.ts";
import { openTestHttp, PASSWORD } from "../../../test/helpers/http/http-app.ts";
import { Cassandra } from "./cassandra/cassandra.ts";
import { Etcd } from "./etcd/etcd.ts";
import { keyspaceOf, tenantDefinitions } from "./schema.ts";

describeCluster("readiness of a cluster", () => {
  let folder: string;
  let daemon: Daemon;
  let etcd: Etcd;
  let cassandra: Cassandra;
  let engine: TestClusterEngine;
  let keyspace: (tenant: string) => string;

  /** A separate etcd, so that its alarms do not affect other tests. */
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
    engine = await openTestClusterEngine({ tenants: ["matrix", "second"], settings });
    await engine.system();
    keyspace = (tenant) => keyspaceOf(engine.prefix, tenant);
  });
  beforeEach(async () => {
    await lower();
    await engine.ready();
  });
  afterAll(async () => {
    await engine?.[Symbol.asyncDispose]();
    await cassandra?.close();
    etcd?.close();
    if (daemon !== undefined) await stopDaemon(daemon, { now: true });
    await rm(folder, { recursive: true, force: true });
  });

  const notReady = (text: RegExp) =>
    expect(engine.ready()).rejects.toMatchObject({ code: "unavailable", message: expect.stringMatching(text) });

  const alarm = (action: "Activate" | "Deactivate") =>
    etcd.call("write", (call) => etcd.maintenance.alarm({ action, memberID: "1", alarm: "Nospace" }, call));
  /** etcd does this itself when its database reaches its quota. */
  const raise = () => alarm("Activate");
  const lower = () => alarm("Deactivate");

  test("an alarm of etcd is told by its name", async () => {
    await raise();
    await notReady(/etcd .*NOSPACE/);
    await lower();
    await engine.ready();
  });

  test("while etcd has no space who is signed in reads on, what is removed goes, and what has to be written is refused at once, saying why", async () => {
    await using http = await openTestHttp({ engine: { ...engine, dir: folder, close: () => Promise.resolve() } });
    const session = await http.signIn("admin");
    const user = (username: string) => ({
      method: "POST" as const,
      url: "/admin/users/new",
      payload: { parent: "/", username, passwd: PASSWORD, otype: "usr", isadmin: false, isactive: true },
    });
    const refused = {
      status: "error",
      code: "unavailable",
      message: expect.stringContaining("etcd takes no writes: its space is exceeded"),
    };
    const { kv } = await engine.system();
    await kv.put("unneeded", Uint8Array.of(1));
    await raise();
    await kv.delete("unneeded");
    expect(await kv.get("unneeded")).toBeUndefined();
    expect(await http.call(session, { url: "/admin/users" })).toMatchObject({ status: "ok" });
    expect(await http.call(session, user("late"))).toMatchObject(refused);
    const authorization = `Basic ${Buffer.from(`matrix.admin:${PASSWORD}`).toString("base64")}`;
    expect((await http.app.inject({ url: "/admin/users", headers: { authorization } })).statusCode).toBe(200);
    await expect(http.signIn("viewer")).rejects.toMatchObject({ code: "unavailable", message: refused.message });
    await lower();
    expect(await http.call(session, user("late"))).toMatchObject({ status: "ok" });
    await http.signIn("viewer");
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
    expect(await Promise.all(["matrix", "second"].map(there))).toEqual([[undefined], [undefined]]);
    await cassandra.define(`DROP KEYSPACE ${keyspace("matrix")}`);
    expect(await engine.ready()).toEqual({ lost: [{ tenant: "matrix", keyspace: keyspace("matrix") }] });
    await expect(there("matrix")).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/gone and has to be restored/),
    });
    expect(await there("second")).toEqual([undefined]);
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
