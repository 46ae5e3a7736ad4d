import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { addressOf, openProxy, type LinkProxy } from "../helpers/cluster/proxy.ts";
import { ClusterAdmin } from "../helpers/cluster/admin.ts";
import { clusterSettings, describeCluster } from "../helpers/cluster/cluster.ts";
import { clusterVariables, Installation } from "./installation.ts";

describeCluster("a controller that starts while its stores are away", () => {
  const open: (LinkProxy | Pick<Installation, "stop">)[] = [];
  afterEach(async () => {
    for (const one of open.splice(0)) await ("stop" in one ? one.stop() : one[Symbol.asyncDispose]());
  });

  test.each(["Cassandra", "etcd"] as const)("waits for %s, says so, and begins when it is there", async (part) => {
    const settings = clusterSettings();
    const toCassandra = await openProxy(addressOf(settings.cassandraContactPoints[0] ?? ""));
    const toEtcd = await openProxy(addressOf(settings.etcdEndpoints[0] ?? ""));
    open.unshift(toCassandra, toEtcd);
    const away = part === "etcd" ? toEtcd : toCassandra;
    away.set("cut");
    const through = {
      ...settings,
      etcdEndpoints: [`http://127.0.0.1:${String(toEtcd.port)}`],
      cassandraContactPoints: [`127.0.0.1:${String(toCassandra.port)}`],
    };
    const odp = await Installation.begin(clusterVariables(through));
    open.unshift(odp);
    await odp.controller.printed(new RegExp(`the start waits for the stores.*${part}`));
    away.set("open");
    await odp.ready();
    expect(await odp.mql("select host from /matrix/system/hostinfo")).toEqual([]);
  });

  test("serves every tenant but the one whose keyspace is gone, and names it", async () => {
    const settings = clusterSettings();
    const variables = clusterVariables(settings);
    const odp = await Installation.start(variables);
    const admin = await ClusterAdmin.connect(settings);
    open.push(odp, { stop: () => admin.close() });
    const password = "a horse of the second tenant";
    await odp.ok("POST", "/companys", JSON.stringify({ name: "second", password }));
    const others = await odp.signIn("second", password);
    await odp.controller.kill("SIGTERM");
    const [keyspace] = await admin.dropKeyspaces(`${variables["ODP_CLUSTER_PREFIX"] ?? ""}_second`);

    await odp.startController();
    const ready = await fetch(`${odp.url}/readyz`);
    expect([ready.status, await ready.json()]).toMatchObject([200, { lost: [{ keyspace }] }]);
    expect(await odp.mql("select host from /matrix/system/hostinfo")).toEqual([]);
    const answer = await fetch(`${odp.url}/mxobject/mql?sessionid=${others}`, {
      method: "POST",
      body: new URLSearchParams({ mql: "select host from /second/system/hostinfo" }),
    });
    expect(await answer.json()).toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/gone and has to be restored/),
    });
  });
});

test("a controller whose port is taken names the port, without a stack", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const odp = await Installation.begin({ ODP_PORT: String(port) });
  try {
    await odp.controller.printed(
      new RegExp(`odp cannot start: The HTTP port 127\\.0\\.0\\.1:${port} cannot be opened: `),
    );
    await expect.poll(() => odp.controller.running).toBe(false);
    expect(odp.controller.output).not.toMatch(/^ +at /m);
  } finally {
    await odp.stop();
    server.close();
  }
});
